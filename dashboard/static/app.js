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
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const query = document.getElementById("query");
  if (event.key === "/" && query) {
    event.preventDefault();
    query.focus();
    query.select();
  }
  const place = { j: "next", k: "previous" }[event.key];
  const link = place && document.querySelector(`a[rel="${place === "next" ? "next" : "prev"}"]`);
  if (link) link.click();
});

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
