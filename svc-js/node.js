/** The library in Node, which ends a process after an uncaught error as if the library weren't there. */

import { homedir, release } from "node:os";
import { Worker } from "node:worker_threads";

import { runtime } from "./svc.js";
import { warn } from "./scope.js";

export * from "./svc.js";

const SHUTDOWN_MS = 2000;

/** With a slash at its end. */
const folder = (path) => `${path.replace(/\\/g, "/").replace(/\/$/, "")}/`;

Object.assign(runtime, {
  options() {
    const { SVC_TOKEN: token, SVC_INGEST_URL: ingestUrl } = process.env;
    return {
      ...(token && { token }),
      ...(ingestUrl && { ingestUrl }),
      root: folder(process.cwd()),
      home: folder(homedir()),
      device: { os: "other", osVersion: `${process.platform} ${release()}` },
      framework: { name: "Node.js", version: process.versions.node },
    };
  },

  /** Listeners of `uncaughtException` and `unhandledRejection` would keep the process alive. */
  watchErrors(capture) {
    process.on("uncaughtExceptionMonitor", (error) => {
      // Stands for a rejection's reason that is no error, which `emit` has captured.
      if (error?.code !== "ERR_UNHANDLED_REJECTION") capture(error);
    });
    const { emit } = process;
    process.emit = function (name, ...args) {
      const [reason] = args;
      // One that ends the process comes from the monitor too: Node prints less of it once its stack was read.
      if (name === "unhandledRejection" && reason instanceof Error) process.nextTick(capture, reason);
      else if (name === "unhandledRejection") capture(reason);
      return emit.call(this, name, ...args);
    };
  },

  watchEnding(transport) {
    process.on("exit", () => {
      const calls = [];
      const waiting = transport()?.leave((url, { signal: _, ...init }) => {
        calls.push([url, init]);
        return new Promise(() => {});
      });
      if (waiting) warn(`${waiting} events are lost: they could be sent only later`);
      else if (sendInThread(calls) < calls.length) warn("the last events are lost: no answer");
    });
  },
});

const THREAD = `
  const { workerData: { calls, state } } = require("node:worker_threads");
  const count = ({ status }) => status === 202 && Atomics.add(state, 1, 1);
  const send = ([url, init]) => fetch(url, init).then(count);
  Promise.allSettled(calls.map(send)).then(() => { Atomics.store(state, 0, 1); Atomics.notify(state, 0); });
`;

/** How many calls of `fetch` got a 202. A process that ends runs no callbacks: it waits for a thread. */
function sendInThread(calls) {
  if (!calls.length) return 0;
  const state = new Int32Array(new SharedArrayBuffer(8));
  new Worker(THREAD, { eval: true, workerData: { calls, state } });
  Atomics.wait(state, 0, 0, SHUTDOWN_MS);
  return state[1];
}
