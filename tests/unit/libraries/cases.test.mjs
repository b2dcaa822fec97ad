// The JavaScript library passes the cases of all libraries.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, beforeEach, test } from "node:test";

import { linkHashes, onWire, scrub, toCrumb } from "../../../svc-js/scope.js";
import { parseStack, toError } from "../../../svc-js/stack.js";
import { createRetryPolicy, fitEvent, parseAnswer } from "../../../svc-js/transport.js";
import * as svc from "../../../svc-js/node.js";

const CASES = expanded(JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8")));
const OPTIONS = { token: "svc_pk_test", release: "shop@1.4.2+318", ingestUrl: "http://ingest.test" };
const PLACE = { inAppInclude: [], inAppExclude: [], root: "/srv/shop/", home: "/home/jo/" };
const sent = [];

/** `{"repeat": "ab", "times": 2, "then": "c"}` is `ababc`. */
function expanded(value) {
  if (Array.isArray(value)) return value.map(expanded);
  if (typeof value !== "object" || value === null) return value;
  if ("repeat" in value) return value.repeat.repeat(value.times) + (value.then ?? "");
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, expanded(inner)]));
}

const { fetch } = globalThis;
globalThis.fetch = async (_url, { body }) => {
  const text = typeof body === "string" ? body : await unzipped(body);
  sent.push(...JSON.parse(text).events);
  return Response.json({}, { status: 202 });
};
beforeEach(() => { sent.length = 0; });
after(() => { globalThis.fetch = fetch; });

function unzipped(body) {
  return new Response(new Blob([body]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** The parts of an event that the scope decides, without the library's own tags. */
function scopeOf({ user, tags: { handled: _, ...tags }, breadcrumbs = [], fingerprint }) {
  const scope = { user, tags, breadcrumbs: breadcrumbs.map(({ type, data }) => [type, data]), fingerprint };
  return Object.fromEntries(Object.entries(scope).filter(([, part]) => part && Object.keys(part).length));
}

for (const { name, options, calls, capture, event, later } of CASES.scope) {
  test(`scope: ${name}`, async () => {
    svc.init({ ...OPTIONS, ...options });
    for (const [call, ...args] of calls) svc[call](...args);
    svc.captureException(new Error("m"), capture);
    if (later) svc.captureException(new Error("m"));
    assert.equal(await svc.flush(), true);
    assert.deepEqual(sent.map(scopeOf), later ? [event, later] : [event]);
  });
}

test("tags beyond the limit are left out", async () => {
  const { given, kept } = CASES.tagLimit;
  const tags = (count) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`key${n}`, "v"]));
  svc.init(OPTIONS);
  svc.setTags(tags(given));
  svc.captureException(new Error("m"));
  await svc.flush();
  assert.deepEqual(sent[0].tags, tags(kept));
});

for (const { capacity, added, first } of CASES.ring) {
  test(`a ring of ${capacity} keeps the last of ${added}`, () => {
    svc.init({ ...OPTIONS, breadcrumbCapacity: capacity });
    for (let n = 0; n < added; n++) svc.addBreadcrumb({ message: String(n) });
    const kept = Array.from({ length: added - first }, (_, n) => String(first + n));
    assert.deepEqual(svc.getBreadcrumbs().map(({ message }) => message), kept);
  });
}

for (const { client, wire } of CASES.breadcrumbs) {
  test(`breadcrumb ${JSON.stringify(client).slice(0, 60)}`, () => {
    const { timestamp, type, data } = onWire(toCrumb(0, client));
    assert.deepEqual([timestamp, type, data], ["1970-01-01T00:00:00.000Z", ...wire]);
  });
}

for (const { key, value, hashed } of CASES.linkBy) {
  test(`linkBy ${key} ${JSON.stringify(value)}`, async () => {
    const hashes = hashed === null ? {} : { [key]: createHash("sha256").update(hashed).digest("hex") };
    assert.deepEqual(await linkHashes({ [key]: value }), hashes);
  });
}

for (const [url, left] of CASES.masking) {
  test(`masking ${url}`, () => assert.equal(scrub(url), left));
}

for (const { name, answers, waitsMs } of CASES.retries) {
  test(`retries: ${name}`, () => {
    const policy = createRetryPolicy();
    const parsed = ({ status, retryAfter = null, body = {}, text = JSON.stringify(body) }) => parseAnswer(status, retryAfter, text);
    assert.deepEqual(answers.map((answer) => policy(parsed(answer))), waitsMs);
  });
}

for (const { given, trimmed } of CASES.trimming.frames) {
  test(`a stack of ${given} frames`, () => {
    const lines = Array.from({ length: given }, (_, n) => n + 1);
    const stack = `Error: m\n${lines.map((line) => `    at f (/srv/shop/app.js:${line}:1)`).join("\n")}`;
    const told = [];
    const error = toError(Object.assign(new Error("m"), { stack }), PLACE, undefined, (what) => told.push(what));
    const kept = given > 100 ? [...lines.slice(0, 50), ...lines.slice(-50)] : lines;
    assert.deepEqual(error.stack.map(({ line }) => line), kept);
    assert.deepEqual(told, trimmed ? [trimmed] : []);
  });
}

for (const { given, kept, trimmed } of CASES.trimming.causes) {
  test(`${given} causes`, async () => {
    svc.init(OPTIONS);
    const chain = (n) => new Error(String(n), n < given ? { cause: chain(n + 1) } : {});
    svc.captureException(chain(0));
    await svc.flush();
    const messages = [];
    for (let { error } = sent[0]; error; error = error.cause) messages.push(error.message);
    assert.deepEqual(messages, Array.from({ length: kept + 1 }, (_, n) => String(n)));
    assert.equal(sent[0].tags.trimmed ?? null, trimmed);
  });
}

test("a long message is cut", async () => {
  const { given, kept } = CASES.trimming.messageChars;
  svc.init(OPTIONS);
  svc.captureException(new Error("m".repeat(given)));
  await svc.flush();
  assert.equal(sent[0].error.message, `${"m".repeat(kept - 1)}…`);
});

for (const { breadcrumbs, breadcrumbChars, messageChars, frames, tags, limit, left } of CASES.trimming.events) {
  test(`an event reduced to ${limit} bytes`, () => {
    const list = (count, make) => Array.from({ length: count }, (_, n) => make(n));
    const crumb = () => ({ timestamp: "2026-01-31T12:00:00.000Z", type: "custom", data: { message: "b".repeat(breadcrumbChars) } });
    const encoded = fitEvent({
      tags: Object.fromEntries(list(tags, (n) => [`key${n}`, "v"])),
      error: {
        type: "Error",
        message: "m".repeat(messageChars),
        stack: list(frames, (n) => ({ function: "f", file: "f.js", line: n + 1, inApp: true })),
      },
      ...(breadcrumbs && { breadcrumbs: list(breadcrumbs, crumb) }),
    }, limit);
    if (left === null) return assert.equal(encoded, undefined);
    assert.ok(Buffer.byteLength(encoded) <= limit);
    const event = JSON.parse(encoded);
    assert.deepEqual({
      breadcrumbs: event.breadcrumbs?.length ?? 0,
      messageChars: [...event.error.message].length,
      frames: event.error.stack.length,
      trimmed: event.tags.trimmed ?? null,
    }, left);
  });
}

for (const { engine, message, stack, frames } of CASES.stacks) {
  test(`stack of ${engine}`, () => {
    const sites = parseStack(stack, message, PLACE);
    assert.deepEqual(sites.map((site) => [site.function ?? null, site.file, site.line, site.column ?? null, site.inApp]), frames);
  });
}
