// Progressive enhancement: every page works without this script.
"use strict";

document.documentElement.classList.add("has-js");

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  pick(event.target.closest(".chart .column, .chart .mark"));
});

// Touch shows no tooltips: the tooltip of a tapped bar or mark appears below the chart.
function pick(part) {
  for (const other of document.querySelectorAll(".column.picked")) other.classList.remove("picked");
  for (const caption of document.querySelectorAll("[data-figure]")) {
    caption.dataset.figure ||= caption.textContent;
    const chosen = part?.closest("figure").contains(caption);
    const text = chosen ? part.querySelector("title").textContent : caption.dataset.figure;
    if (caption.textContent !== text) caption.textContent = text;
  }
  part?.classList.add("picked");
}

// The button says "Saving…" until the server has answered.
document.addEventListener("submit", async (event) => {
  const form = event.target.closest('main form.change[action^="/issues/"]');
  if (!form) return;
  event.preventDefault();
  const button = event.submitter;
  const body = new URLSearchParams(new FormData(form, button));
  form.classList.add("saving");
  if (button) { button.dataset.label = button.textContent; button.textContent = "Saving…"; button.disabled = true; }
  let problem = "No answer from the server: it is not known whether your change was made. Reload the page to see.";
  try {
    const response = await fetch(form.action, { method: "POST", body });
    if (response.ok) return await show(response);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    problem = [...page.querySelectorAll("#main h1, #main p, #main li")].map((part) => part.textContent.trim()).join(" ");
  } catch { /* the sentence above */ }
  form.classList.remove("saving");
  if (button) { button.textContent = button.dataset.label; button.disabled = false; }
  showProblem(problem);
});

// Puts the answer's page in the place of this one.
async function show(response) {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  document.getElementById("main").replaceWith(page.getElementById("main"));
  document.title = page.title;
  history.replaceState(null, "", response.url);
  prepare();
  document.querySelector("main .notice")?.scrollIntoView({ block: "nearest" });
}

function showProblem(text) {
  const notice = document.createElement("div");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.textContent = text;
  document.getElementById("main").prepend(notice);
}

// The way back from an issue leads to the list as it was last seen in this tab.
function keepList() {
  const back = document.querySelector("a[data-list]");
  try {
    if (document.querySelector(".issues")) sessionStorage.setItem(location.pathname, location.search);
    if (back) back.search = sessionStorage.getItem(back.pathname) ?? back.search;
  } catch { /* storage is forbidden: the link of the page stays */ }
}

let looks = 0, following = false;

// Times in the reader's zone, followed by UTC.
function localise(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    const local = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if (time.dataset.exact === undefined) time.title = `${local} · ${time.title}`;
    else time.textContent = local;
  }
}

// Parts that depend on the reader (times, their next morning) or change by themselves (waiting events, pending changes).
function prepare() {
  keepList();
  localise(document);
  if (!following && document.querySelector("[data-behind]")) { following = true; setTimeout(follow, 5000); }
  for (const button of document.querySelectorAll("[data-morning]")) {
    button.value = `morning ${new Date().getTimezoneOffset()}`;
    button.querySelector(".utc").remove();
  }
  if (document.querySelector("[data-pending]") && looks++ < 60) setTimeout(async () => {
    if (!document.querySelector("[data-pending]")) return;
    try { await show(await fetch(location.href)); } catch { /* the notice stays */ }
  }, 2000);
}
prepare();

// While events wait to be stored their line is kept current; then the page is loaded again, unless the reader would lose input.
async function follow() {
  const line = document.querySelector("[data-behind]");
  if (!line) { following = false; return; }
  let found = null;
  try {
    const response = await fetch("/api/v1/pipeline");
    if (response.status === 401) return;
    if (response.ok) found = await response.json();
  } catch { /* retry */ }
  if (found?.known && !found.behind) {
    const busy = document.querySelector('main details[open]:not(.frame), main input[name="issue"]:checked') || document.activeElement.closest("main form");
    if (!busy && getSelection().isCollapsed) return location.reload();
    line.replaceChildren("All events are stored now. ", Object.assign(document.createElement("a"), { href: location.href, textContent: "Show them" }));
    return;
  }
  if (found?.behind) {
    const [size, unit] = [[3600, "h"], [60, "min"], [1, "s"]].find(([least]) => found.behind.seconds >= least);
    line.querySelector("[data-distance]").textContent = `${Math.floor(found.behind.seconds / size)} ${unit}`;
    line.querySelector("time").dateTime = found.behind.completeUntil;
    localise(line);
  }
  setTimeout(follow, 5000);
}

// The notice of a change of many issues is kept current; at its end the list is loaded again, unless something on it is selected.
async function watchMade() {
  const notice = document.querySelector("[data-made]");
  if (!notice?.dataset.made) return;
  await new Promise((resume) => setTimeout(resume, 1000));
  try {
    const response = await fetch(notice.dataset.made);
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-made]");
    notice.replaceWith(next);
    if (!next.dataset.made && !document.querySelector('main input[name="issue"]:checked')) return location.reload();
  } catch { /* retry */ }
  watchMade();
}
watchMade();

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
  if (event.key === "?") {
    const help = document.querySelector("details.more");
    if (help) { help.open = true; help.scrollIntoView({ block: "center" }); }
  }
  if (event.key === "x") document.activeElement?.closest?.("tr")?.querySelector('input[name="issue"]')?.click();
  const action = { r: "resolve", i: "ignore" }[event.key];
  if (action && document.querySelector('input[name="issue"]:checked')) document.querySelector(`#bulk button[value="${action}"]`).click();
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
  const label = bulk.querySelector("[data-selected]"), every = bulk.querySelector("[data-every]");
  const update = () => {
    const selected = checkboxes.filter((box) => box.checked).length;
    bulk.classList.toggle("active", selected > 0);
    all.checked = selected === checkboxes.length;
    if (every) {
      every.parentElement.hidden = !all.checked;
      every.checked &&= all.checked;
      bulk.querySelector('[value="merge"]').disabled = every.checked;
    }
    label.textContent = `${every?.checked ? every.dataset.every : selected} selected:`;
    all.indeterminate = selected > 0 && !all.checked;
  };
  all.addEventListener("change", () => { for (const box of checkboxes) box.checked = all.checked; update(); });
  for (const box of checkboxes) box.addEventListener("change", update);
  every?.addEventListener("change", update);
  addEventListener("pageshow", update);
}

// Suggests keys, and values of a key, for the term before the caret.
const box = document.querySelector("input[data-suggest]");
if (box) {
  const list = document.createElement("ul");
  Object.assign(list, { id: "suggestions", className: "suggestions", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  box.after(list);
  let asked = 0, chosen = -1, term = null;

  const close = () => { list.hidden = true; chosen = -1; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  const current = () => {
    const before = box.value.slice(0, box.selectionStart);
    const found = /(?:^|[\s(])-?(?:([A-Za-z_][\w.-]*):)?([^\s():"\[\]]*)$/.exec(before);
    return found && { key: found[1], prefix: found[2], start: before.length - found[2].length, end: box.selectionStart };
  };
  const suggest = async () => {
    const number = ++asked;
    term = current();
    if (!term || (!term.key && !term.prefix)) return close();
    await new Promise((resume) => setTimeout(resume, 120));
    if (number !== asked) return;
    const path = !term.key ? "keys" : `${box.dataset.fields.split(" ").includes(term.key) ? "fields" : "tags"}/${encodeURIComponent(term.key)}/values`;
    let found = { values: term.key === "is" ? box.dataset.states.split(" ").filter((state) => state.startsWith(term.prefix)) : [] };
    if (term.key !== "is") try {
      const answer = await fetch(`${box.dataset.suggest}/${path}?prefix=${encodeURIComponent(term.prefix)}`);
      if (answer.ok) found = await answer.json();
    } catch { /* without suggestions */ }
    if (number !== asked || document.activeElement !== box) return;
    const texts = (found.keys ?? found.values ?? []).slice(0, 8).map((one) => one.value ?? one).filter((text) => text !== term.prefix);
    list.replaceChildren(...texts.map((text, index) => {
      const item = document.createElement("li");
      item.id = `suggestion-${index}`;
      item.setAttribute("role", "option");
      item.textContent = text;
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); choose(text); });
      return item;
    }));
    chosen = -1;
    list.hidden = !texts.length;
    box.setAttribute("aria-expanded", String(!list.hidden));
  };
  const choose = (text) => {
    const written = term.key ? (/^[\w./@+-]+$/.test(text) ? text : `"${text.replace(/["\\*]/g, "\\$&")}"`) : `${text}:`;
    box.setRangeText(written, term.start, term.end, "end");
    close();
    box.focus();
    if (!term.key) suggest();
  };
  box.addEventListener("input", suggest);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + list.children.length) % list.children.length;
      [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
      box.setAttribute("aria-activedescendant", `suggestion-${chosen}`);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      choose(list.children[chosen].textContent);
    } else if (event.key === "Escape") close();
  });
}

const waiting = document.querySelector("[data-wait-for-events]");
if (waiting) {
  const poll = async () => {
    try {
      const response = await fetch(waiting.dataset.waitForEvents, { headers: { Accept: "application/json" } });
      if (response.ok && (await response.json()).issues.length) {
        waiting.classList.add("arrived");
        waiting.textContent = "Your first event has arrived. Its issue is shown in a moment.";
        setTimeout(() => location.reload(), 1500);
        return;
      }
      if (response.status === 401) return;
    } catch { /* retry */ }
    setTimeout(poll, 3000);
  };
  setTimeout(poll, 3000);
}
