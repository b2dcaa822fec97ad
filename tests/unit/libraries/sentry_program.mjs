/** An application that reports by Sentry's SDK to us. With RECORD its events go into that file instead. */

import { writeFileSync } from "node:fs";

import * as Sentry from "@sentry/node";
import { svcTransport } from "svc-js/sentry-transport";

import { act } from "./sentry_acts.mjs";

const { DSN: dsn, RECORD, SITE } = process.env;
const events = [];
const recorder = () => ({
  async send([, items]) {
    events.push(...items.filter(([{ type }]) => type === "event").map(([, event]) => event));
    writeFileSync(RECORD, JSON.stringify(events));
    return {};
  },
  flush: async () => true,
});
const transport = RECORD ? recorder : svcTransport;
Sentry.init({ dsn, transport, release: "shop@1.4.2", dist: "318", environment: "staging", tracesSampleRate: 1 });
await act(Sentry, SITE);
throw new Error("uncaught");
