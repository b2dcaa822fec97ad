// Progressive enhancement: every page works without this script.
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
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = label; }, 2000);
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

// Focuses the next or previous entry of a list, so that Enter opens it. Returns false on a page without a list.
function select(step) {
  const entries = [...document.querySelectorAll("a[data-entry]")];
  const current = entries.findIndex((entry) => entry.closest("tr").contains(document.activeElement));
  const index = current < 0 ? (step > 0 ? 0 : entries.length - 1) : current + step;
  entries[Math.min(Math.max(index, 0), entries.length - 1)]?.focus();
  return entries.length > 0;
}

for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

const bulk = document.getElementById("bulk");
if (bulk) {
  const all = document.querySelector("[data-select-all]");
  const checkboxes = [...document.querySelectorAll('input[name="issue"][form="bulk"]')];
  const label = bulk.querySelector("[data-selected]");
  const update = () => {
    const selected = checkboxes.filter((box) => box.checked).length;
    bulk.classList.toggle("active", selected > 0);
    label.textContent = `${selected} selected:`;
    all.checked = selected === checkboxes.length;
    all.indeterminate = selected > 0 && !all.checked;
  };
  all.addEventListener("change", () => { for (const box of checkboxes) box.checked = all.checked; update(); });
  for (const box of checkboxes) box.addEventListener("change", update);
  addEventListener("pageshow", update);
}

const waiting = document.querySelector("[data-wait-for-events]");
if (waiting) {
  const poll = async () => {
    try {
      const response = await fetch(waiting.dataset.waitForEvents, { headers: { Accept: "application/json" } });
      if (response.ok && (await response.json()).issues.length) return location.reload();
      if (response.status === 401) return;
    } catch { /* retry */ }
    setTimeout(poll, 3000);
  };
  setTimeout(poll, 3000);
}
