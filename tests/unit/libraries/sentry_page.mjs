/** The same in a page. `begin` returns what Sentry's SDK sends; if that `isRecorded`, we get nothing. */

import * as Sentry from "@sentry/browser";
import { svcTransport } from "svc-js/sentry-transport";

import { act } from "./sentry_acts.mjs";

globalThis.begin = async (dsn, isRecorded) => {
  const events = [];
  const transport = (options) => {
    const ours = isRecorded ? { send: async () => ({}), flush: async () => true } : svcTransport(options);
    return {
      send([head, items]) {
        events.push(...items.filter(([{ type }]) => type === "event").map(([, event]) => event));
        return ours.send([head, items]);
      },
      flush: ours.flush,
    };
  };
  Sentry.init({
    dsn, transport, release: "shop@1.4.2", dist: "318", environment: "staging",
    integrations: [Sentry.browserTracingIntegration()], tracesSampleRate: 1,
  });
  history.pushState({}, "", "/cart?key=secret");
  document.querySelector("button").click();
  await act(Sentry, location.origin);
  const uncaught = new Promise((resolve) => addEventListener("error", () => setTimeout(resolve)));
  setTimeout(() => { throw new Error("uncaught"); });
  await uncaught;
  await Sentry.flush();
  return JSON.parse(JSON.stringify(events)); // a message with parameters is an object
};
