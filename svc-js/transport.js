/** The queue of events, sent in batches (protocol, 4.2, 7, 8). */

import { clip, textOf, warn } from "./scope.js";

const BATCH_EVENTS = 100;
const MAX_BODY_BYTES = 1048576;
const MAX_EVENT_BYTES = MAX_BODY_BYTES - '{"events":[]}'.length;
/** All that browsers allow of `keepalive` bodies, which are sent even if the page closes. */
const KEEPALIVE_BYTES = 65536;

const sizeOf = (text) => new TextEncoder().encode(text).length;

/** The event as JSON, reduced step by step to `limit` bytes; undefined if it is too large. */
export function fitEvent(event, limit = MAX_EVENT_BYTES) {
  let text = JSON.stringify(event);
  for (const [what, reduce] of Object.entries(REDUCTIONS)) {
    if (sizeOf(text) <= limit) return text;
    reduce(event);
    if (JSON.stringify(event).length < text.length) tellTrimmed(event, what);
    text = JSON.stringify(event);
  }
  if (sizeOf(text) <= limit) return text;
}

export function tellTrimmed(event, what) {
  const { trimmed, ...tags } = event.tags ?? {};
  if (Object.keys(tags).length === 50 || trimmed?.includes(what)) return;
  event.tags = { ...tags, trimmed: trimmed ? `${trimmed}, ${what}` : what };
}

function eachError(event, change) {
  for (let { error } = event; error; error = error.cause) change(error);
}

const REDUCTIONS = {
  breadcrumbs: (event) => { event.breadcrumbs = event.breadcrumbs?.slice(-20); },
  "all breadcrumbs": (event) => { delete event.breadcrumbs; },
  messages: (event) => eachError(event, (error) => { error.message = clip(error.message, 1000); }),
  stacks: (event) => eachError(event, ({ stack }) => stack.splice(10, stack.length - 20)),
};

/** Status 0 is no answer, or one that isn't of the protocol. */
export function parseAnswer(status, retryAfter, body) {
  let content;
  try {
    content = JSON.parse(body);
  } catch { /* the status counts */ }
  const waitMs = Math.max(positive(retryAfter) * 1000, positive(content?.retryAfterMs));
  const errors = content?.errors ?? [];
  const isBatch = Object(content) === content && Array.isArray(errors);
  const isOurs = status === 202 ? isBatch : status >= 400 && status < 600;
  return { status: isOurs ? status : 0, waitMs, errors, why: `status ${status} ${body}`.slice(0, 500) };
}

const positive = (value) => (value > 0 && value < Infinity ? Number(value) : 0);

/** Of a batch: milliseconds before its next post; null if its outcome is known. */
export function createRetryPolicy() {
  let failures = 0;
  let throttles = 0;
  return ({ status, waitMs }) => {
    if (status === 429) return Math.max(Math.min(1000 * 2 ** throttles++, 300_000), waitMs);
    if ((status && status < 500) || failures === 3) return null;
    return Math.max(1000 * 2 ** failures++, waitMs);
  };
}

export function createTransport(options, sdk) {
  const { fetch } = globalThis; // not the one that leaves breadcrumbs
  const store = options.queue === "indexeddb" ? import("./store.js") : undefined;
  const sending = new Set();
  let queue = [];
  let retrying = [];
  let aliveBytes = 0;
  let notBefore = 0;
  let isRunning = false;
  let wake = () => {};

  /** Queues an event, whose JSON `encode` makes once `ready` is settled. */
  function submit(id, encode, ready) {
    if (unsettled().length >= 1000) return warn("events are lost: the queue is full");
    const item = { id, encode, ready, at: performance.now() };
    item.settled = new Promise((settle) => { item.settle = settle; });
    queue.push(item);
    Promise.resolve(ready).then(() => stored("put", id, bodyOf(item)));
    run();
    return true;
  }

  async function stored(method, ...args) {
    try {
      return await (await store)?.[method](...args);
    } catch (error) {
      warn(`IndexedDB: ${textOf(error)}`);
    }
  }

  async function run() {
    if (isRunning) return;
    isRunning = true;
    for (let wait; (wait = await untilDue()) !== null;) {
      if (wait > 0) await sleep(wait);
      else await deliver(retrying.shift() ?? take(MAX_EVENT_BYTES));
    }
    isRunning = false;
    if (queue.length || retrying.length) run();
  }

  function sleep(ms) {
    return new Promise((resume) => {
      const timer = setTimeout(resume, Math.min(ms, 2 ** 31 - 1));
      timer.unref?.();
      wake = () => resume(clearTimeout(timer));
    });
  }

  /** Milliseconds until a batch is due; null if nothing waits. */
  async function untilDue() {
    if (retrying.length) return pause();
    if (!queue.length) for (const [id, body] of await stored("leftovers") ?? []) submit(id, () => body);
    for (const { ready } of queue) await ready;
    if (!queue.length) return null;
    const [{ at, urgent }] = queue;
    return Math.max(pause(), urgent ? 0 : at + 1000 - performance.now());
  }

  function pause() {
    return globalThis.navigator?.onLine === false ? Infinity : notBefore - performance.now();
  }

  function take(limit) {
    const items = [];
    for (let size = -1; queue.length && items.length < BATCH_EVENTS;) {
      const [item] = queue;
      const body = bodyOf(item);
      if (body && (size += sizeOf(body) + 1) > limit) break;
      queue.shift();
      if (body) items.push(item);
      else item.settle();
    }
    return { items, policy: createRetryPolicy() };
  }

  async function deliver(batch, sendNow) {
    if (!batch.items.length) return;
    sending.add(batch);
    const answer = await post(batch, sendNow);
    sending.delete(batch);
    const wait = batch.policy(answer);
    if (wait === null) return finish(batch.items, answer);
    notBefore = Math.max(notBefore, performance.now() + wait);
    retrying.push(batch);
    run();
  }

  async function post(batch, sendNow) {
    const { ingestUrl, token } = options;
    const headers = { Authorization: `Bearer ${token}`, "Svc-Sdk": sdk, "Content-Type": "application/json" };
    let body = `{"events":[${batch.items.map(bodyOf).join()}]}`;
    let alive = 0;
    try {
      // Compressing takes time, which a page that closes doesn't have.
      if (!sendNow && body.length > 1024 && globalThis.CompressionStream) {
        const stream = new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"));
        body = await new Response(stream).arrayBuffer();
        headers["Content-Encoding"] = "gzip";
      }
      const bytes = body.byteLength ?? sizeOf(body);
      if (globalThis.document && bytes <= room()) alive = bytes;
      aliveBytes += alive;
      batch.outlives = alive > 0;
      const send = sendNow ?? fetch;
      const response = await send(`${ingestUrl}/v1/events:batch`, {
        method: "POST",
        headers,
        body,
        keepalive: batch.outlives,
        credentials: "omit",
        redirect: "manual",
        signal: AbortSignal.timeout?.(10_000),
      });
      return parseAnswer(response.status, response.headers.get("Retry-After"), await response.text());
    } catch (error) {
      return { status: 0, waitMs: 0, why: textOf(error) };
    } finally {
      aliveBytes -= alive;
    }
  }

  function room() {
    return globalThis.document ? KEEPALIVE_BYTES - aliveBytes : MAX_BODY_BYTES;
  }

  /** Sends what waits by requests that outlive the page; at the end of a process by `send`. */
  function leave(send = fetch) {
    if (pause() > 0) return unsettled().length;
    for (const batch of sending) if (!batch.outlives) post(batch, send);
    for (let batch; (batch = take(room() - 13)).items.length;) deliver(batch, send);
  }

  function unsettled() {
    return [...sending, ...retrying].flatMap(({ items }) => items).concat(queue);
  }

  async function flush(timeoutMs) {
    const items = unsettled();
    for (const item of items) item.urgent = true;
    wake();
    let timer;
    const timeout = new Promise((resolve) => { timer = setTimeout(resolve, timeoutMs, false); });
    const all = Promise.all(items.map(({ settled }) => settled)).then(() => true);
    const isDone = await Promise.race([all, timeout]);
    clearTimeout(timer);
    return isDone;
  }

  function finish(items, { status, errors, why }) {
    if (status !== 202) warn(`events are lost: ${options.ingestUrl}: ${why}`);
    else if (errors.length) warn(`the server rejected events, the first of them: ${textOf(errors[0])}`);
    if (status && status < 500) stored("remove", items.map(({ id }) => id));
    for (const { settle } of items) settle();
  }

  run();
  return { submit, wake: () => wake(), leave, flush };
}

function bodyOf(item) {
  item.body ??= item.encode() || "";
  return item.body;
}
