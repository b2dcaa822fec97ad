/** Errors that nothing handles, the end of a page, and automatic breadcrumbs. */

import { NOTICE, textOf } from "./scope.js";

export function watchErrors(capture) {
  addEventListener("error", ({ error, message, filename, lineno, colno }) => {
    // Of a script of another origin that was loaded without `crossorigin`.
    if (message === "Script error." && !filename) return;
    capture(error ?? { name: "Error", message }, `@${filename}:${lineno}:${colno}`);
  });
  addEventListener("unhandledrejection", ({ reason }) => capture(reason));
}

export function watchEnding(transport) {
  addEventListener("online", () => transport()?.wake());
  addEventListener("pagehide", () => transport()?.leave());
  globalThis.document?.addEventListener("visibilitychange", () => document.hidden && transport()?.leave());
}

function wrap(owner, name, make) {
  if (typeof owner?.[name] === "function") owner[name] = make(owner[name]);
}

/** By flag of `capture`; each is watched once. They call `add` with a breadcrumb's type and data. */
export const SOURCES = {
  network(add) {
    const begin = (method, url) => {
      const data = { method: textOf(method).toUpperCase(), url: textOf(url) };
      const started = performance.now();
      return (status) => add("net", { ...data, durationMs: performance.now() - started, status });
    };
    wrap(globalThis, "fetch", (fetch) => function (...args) {
      const [resource, init] = args;
      const end = begin(init?.method ?? resource?.method ?? "GET", resource?.url ?? resource);
      const answer = fetch.apply(this, args);
      answer.then(({ status }) => end(status), () => end());
      return answer;
    });
    wrap(globalThis.XMLHttpRequest?.prototype, "open", (open) => function (...args) {
      const end = begin(...args);
      this.addEventListener("loadend", () => end(this.status || undefined), { once: true });
      return open.apply(this, args);
    });
  },

  navigation(add) {
    if (!globalThis.history) return;
    const address = () => location.pathname + location.search;
    let from = address();
    const moved = () => {
      const to = address();
      if (to !== from) add("nav", { from, to });
      from = to;
    };
    for (const name of ["pushState", "replaceState"]) {
      wrap(history, name, (move) => function (...args) {
        move.apply(this, args);
        moved();
      });
    }
    addEventListener("popstate", moved);
  },

  sessions(add) {
    globalThis.document?.addEventListener("visibilitychange", () => {
      add("user", { action: document.hidden ? "background" : "active", target: "app" });
    });
  },

  console(add) {
    for (const level of ["debug", "log", "info", "warn", "error"]) {
      wrap(console, level, (print) => function (...args) {
        const message = args.map((arg) => textOf(arg)).join(" ");
        if (!message.startsWith(NOTICE)) add("log", { level, message });
        return print.apply(this, args);
      });
    }
  },
};
