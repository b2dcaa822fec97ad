// Small comforts; every page reads without them.
"use strict";

document.documentElement.classList.add("has-js");

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const word = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = word; }, 2000);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input:not([type="checkbox"]), select, textarea')) return;
  const query = document.getElementById("query");
  if (event.key === "/" && query) {
    event.preventDefault();
    query.focus();
    query.select();
  }
  const step = { j: 1, k: -1 }[event.key];
  if (step && !select(step)) document.querySelector(`nav[aria-label="Events"] a[rel="${step > 0 ? "next" : "prev"}"]`)?.click();
});

// In a list the next or the previous entry gets the focus, so that Enter opens it; false on a page without a list.
function select(step) {
  const entries = [...document.querySelectorAll("a[data-entry]")];
  const here = entries.findIndex((entry) => entry.closest("tr").contains(document.activeElement));
  const place = here < 0 ? (step > 0 ? 0 : entries.length - 1) : here + step;
  entries[Math.min(Math.max(place, 0), entries.length - 1)]?.focus();
  return entries.length > 0;
}

for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

const bulk = document.getElementById("bulk");
if (bulk) {
  const all = document.querySelector("[data-select-all]");
  const picks = [...document.querySelectorAll('input[name="issue"][form="bulk"]')];
  const words = bulk.querySelector("[data-selected]");
  const count = () => {
    const picked = picks.filter((pick) => pick.checked).length;
    bulk.classList.toggle("active", picked > 0);
    words.textContent = `${picked} selected:`;
    all.checked = picked === picks.length;
    all.indeterminate = picked > 0 && !all.checked;
  };
  all.addEventListener("change", () => { for (const pick of picks) pick.checked = all.checked; count(); });
  for (const pick of picks) pick.addEventListener("change", count);
  addEventListener("pageshow", count);
}

const waiting = document.querySelector("[data-wait-for-events]");
if (waiting) {
  const look = async () => {
    try {
      const answer = await fetch(waiting.dataset.waitForEvents, { headers: { Accept: "application/json" } });
      if (answer.ok && (await answer.json()).issues.length) return location.reload();
      if (answer.status === 401) return;
    } catch { /* the next look may work */ }
    setTimeout(look, 3000);
  };
  setTimeout(look, 3000);
}
