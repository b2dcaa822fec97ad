// The JavaScript library's queue, on a clock that the tests move.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";

import { createTransport } from "../../../svc-js/transport.js";

const OPTIONS = { token: "svc_pk_test", ingestUrl: "http://ingest.test" };
let now, timers, posts, answers, warnings;

beforeEach(() => {
  [now, timers, posts, answers, warnings] = [0, [], [], [], []];
  performance.now = () => now;
  globalThis.setTimeout = (act, ms, ...args) => {
    const timer = { at: now + ms, act: () => act(...args) };
    timers.push(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => { timers = timers.filter((other) => other !== timer); };
  globalThis.fetch = (url, request) => {
    posts.push({ now, url, ...request });
    return answers.shift()?.() ?? Promise.resolve(Response.json({}, { status: 202 }));
  };
  console.warn = (message) => warnings.push(message);
  delete globalThis.document;
  globalThis.CompressionStream = undefined; // takes real time
  Object.defineProperty(globalThis, "navigator", { value: { onLine: true }, configurable: true });
});

const status = (code, body = {}) => () => Promise.resolve(Response.json(body, { status: code }));
const unreachable = () => Promise.reject(new TypeError("fetch failed"));
const sizes = () => posts.map(({ body }) => JSON.parse(body).events.length);
const submit = (transport, count, chars = 10) => {
  for (let n = 0; n < count; n++) transport.submit(`id${n}`, () => JSON.stringify("x".repeat(chars - 2)));
};

/** Lets time pass to the next timer until none is left, or until `end`. */
async function pass(end = Infinity) {
  for (;;) {
    for (let turns = 0; turns < 20; turns++) await nextTurn();
    const [next] = timers.sort((one, other) => one.at - other.at);
    if (!next || next.at > end) break;
    now = Math.max(now, next.at);
    timers.shift();
    next.act();
  }
  now = Math.min(end, Math.max(now, end === Infinity ? now : end));
}

test("events wait a second for others", async () => {
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 3);
  await pass();
  assert.deepEqual(sizes(), [3]);
  assert.deepEqual(posts.map((post) => post.now), [1000]);
  const [{ url, method, headers, keepalive }] = posts;
  assert.deepEqual([url, method, keepalive], ["http://ingest.test/v1/events:batch", "POST", false]);
  assert.deepEqual(headers, { Authorization: "Bearer svc_pk_test", "Svc-Sdk": "svc-js/1", "Content-Type": "application/json" });
});

test("a batch has at most 100 events", async () => {
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 250, 3);
  const isDone = transport.flush(60_000);
  await pass();
  assert.equal(await isDone, true);
  assert.deepEqual(sizes(), [100, 100, 50]);
});

test("a batch has at most a megabyte with its wrapper", async () => {
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 12, 104_856); // ten of them with commas and wrapper: 1,048,582 bytes
  transport.flush(60_000);
  await pass();
  assert.deepEqual(sizes(), [9, 3]);
});

test("a batch that isn't taken is repeated after 1, 2 and 4 s, and then lost", async () => {
  answers = [status(500), unreachable, status(503), status(500)];
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 2);
  await pass(1500);
  submit(transport, 1);
  await pass();
  assert.deepEqual(posts.map((post) => post.now), [1000, 2000, 4000, 8000, 8000]);
  assert.deepEqual(sizes(), [2, 2, 2, 2, 1]);
  assert.match(warnings.join(), /events are lost: http:\/\/ingest\.test: status 500/);
});

test("nothing is sent before a 429 allows it, not even by a flush or by leaving", async () => {
  answers = [status(429, { error: "rateLimited", retryAfterMs: 5000 })];
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 1);
  await pass(1500);
  submit(transport, 1);
  transport.flush(60_000);
  transport.leave();
  await pass();
  assert.deepEqual(posts.map((post) => post.now), [1000, 6000, 6000]);
});

test("nothing is sent while the browser is offline", async () => {
  const transport = createTransport(OPTIONS, "svc-js/1");
  navigator.onLine = false;
  submit(transport, 2);
  await pass(30_000);
  assert.deepEqual(sizes(), []);
  navigator.onLine = true;
  transport.wake();
  await pass();
  assert.deepEqual(sizes(), [2]);
});

test("leaving sends 64 KB by requests that outlive the page; the rest waits for the page to stay", async () => {
  globalThis.document = {};
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 4, 20_000);
  answers = [() => new Promise(() => {})];
  transport.leave();
  assert.deepEqual(sizes(), [3]);
  assert.equal(posts[0].keepalive, true);
  await pass(2000);
  assert.deepEqual(posts.slice(1).map(({ keepalive }) => keepalive), [false]);
});

test("leaving sends a batch that is still being compressed", async () => {
  globalThis.document = {};
  globalThis.CompressionStream = class extends TransformStream {
    constructor() {
      super({ transform: () => new Promise(() => {}) });
    }
  };
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 1, 30_000);
  await pass(2000);
  assert.deepEqual(sizes(), []);
  transport.leave();
  assert.deepEqual(posts.map(({ keepalive }) => keepalive), [true]);
});

test("what a hidden page couldn't send is repeated", async () => {
  globalThis.document = {};
  answers = [unreachable];
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 1);
  transport.leave();
  await pass();
  assert.deepEqual(posts.map((post) => post.now), [0, 1000]);
});

test("a flush ends at its deadline", async () => {
  answers = [() => new Promise(() => {})];
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 1);
  const isDone = transport.flush(3000);
  await pass();
  assert.equal(await isDone, false);
  assert.equal(now, 3000);
});

test("more than a thousand events without an outcome are not queued", async () => {
  const transport = createTransport(OPTIONS, "svc-js/1");
  submit(transport, 1001);
  await pass();
  assert.equal(sizes().reduce((sum, size) => sum + size), 1000);
  assert.match(warnings.join(), /the queue is full/);
});
