/** Reports errors to the ingestion service (protocol, 2.11); `svc.d.ts` describes the functions. */

import { SOURCES, watchEnding, watchErrors } from "./hooks.js";
import { clip, forClient, mergeTags, onWire, scrub, textOf, toCrumb, toUser, warn } from "./scope.js";
import { toError } from "./stack.js";
import { createTransport, fitEvent, tellTrimmed } from "./transport.js";

export const VERSION = "0.2.0";

const DEFAULTS = {
  token: "",
  release: "",
  ingestUrl: "http://127.0.0.1:8080",
  environment: "prod",
  identity: false,
  capture: {},
  trackAutoBreadcrumb: true,
  inAppInclude: [],
  inAppExclude: [],
  breadcrumbCapacity: 100,
  queue: "memory",
  beforeSend: (event) => event,
};

/** What Node and React Native have otherwise. */
export const runtime = {
  watchErrors,
  watchEnding,
  options() {
    const { userAgent, language } = navigator;
    const find = (names) => new RegExp(`(${names})/[\\d.]+`).exec(userAgent)?.[0];
    const browser = find("Edg|OPR|Firefox") ?? find("Chrome|Version") ?? "";
    const osVersion = browser.replace("Version", "Safari").replace("/", " ");
    return { device: { os: "web", osVersion, locale: language } };
  },
};

/** Null before `init`. */
let options = null;
let transport = null;
// The scope: its parts are replaced, never changed.
let user = null;
let tags = {};
let crumbs = [];

/** Runs a part of the library, from which nothing may reach the application. */
function quietly(run, otherwise) {
  try {
    return run();
  } catch (error) {
    warn(`failed: ${textOf(error)}`);
    return otherwise;
  }
}

const afterInit = (run, otherwise) => quietly(() => (options ? run() : otherwise), otherwise);

export function resolve(given) {
  const resolved = { ...DEFAULTS, ...runtime.options() };
  for (const [name, value] of Object.entries(given)) {
    if (DEFAULTS[name]?.constructor === value?.constructor) resolved[name] = value;
    else if (value != null) warn(`option ${name} can't be ${textOf(value, 64)}`);
  }
  resolved.capture = { errors: true, navigation: true, ...resolved.capture, ending: true };
  const parts = /^(?:([^+]+)@)?([^@+]+)?(?:\+([^]+))?$/.exec(resolved.release) ?? [];
  const [, name = "app", version = "0.0.0", build = "0"] = parts;
  const release = `${name}@${version}+${build}`;
  if (release !== resolved.release) warn(`release isn't <app-name>@<version>+<build>; using ${release}`);
  const { environment, device, framework, breadcrumbCapacity: size } = resolved;
  if (!(size > 0 && size <= 100)) resolved.breadcrumbCapacity = 100;
  const app = { version, build, framework };
  resolved.constant = { kind: "error", platform: "javascript", release, environment, device, app };
  resolved.ingestUrl = resolved.ingestUrl.replace(/\/+$/, "");
  return resolved;
}

Object.assign(SOURCES, {
  ending: () => runtime.watchEnding(() => transport),
  errors: () => runtime.watchErrors((error, stack) => afterInit(() => {
    if (options.capture.errors && !captured.has(error)) capture(error, { stack });
  })),
});

export function init(given) {
  quietly(() => {
    [options, transport, user, tags, crumbs] = [resolve(Object(given)), null, null, {}, []];
    if (Error.stackTraceLimit < 100) Error.stackTraceLimit = 100;
    const isValid = /^[!-~]+$/.test(options.token) && /^https?:\/\/[^?#@\s]+$/.test(options.ingestUrl);
    if (isValid) transport = createTransport(options, `svc-js/${VERSION}`);
    else warn("no valid token or ingestUrl: nothing will be reported");
    for (const [flag, watch] of Object.entries(SOURCES)) {
      if (!options.capture[flag]) continue;
      delete SOURCES[flag];
      watch((type, data) => {
        if (options?.capture[flag] && !data.url?.startsWith(options.ingestUrl)) addBreadcrumb({ type, data });
      });
    }
  });
}

let lastMs = 0;
let counter = 0;

/** A UUID of version 7. None goes back, even if the clock does. */
export function newId(now) {
  const hex = (value, digits) => Math.floor(value).toString(16).padStart(digits, "0");
  [lastMs, counter] = now > lastMs ? [now, 0] : counter < 4095 ? [lastMs, counter + 1] : [lastMs + 1, 0];
  const noise = hex((8 + Math.random() * 4) * 4096, 4) + hex(Math.random() * 2 ** 48, 12);
  return `${hex(lastMs, 12)}7${hex(counter, 3)}${noise}`.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const captured = new WeakSet();
let isCapturing = false;

function capture(error, own) {
  // A getter of the error may report in turn.
  if (!transport || isCapturing) return null;
  isCapturing = true;
  try {
    const now = Date.now();
    const owner = (own.user && quietly(() => toUser(own.user, options.identity))) ?? user;
    const given = (own.tags && quietly(() => mergeTags(tags, own.tags))) ?? tags;
    const url = globalThis.location && { url: clip(scrub(location.href), 200) };
    const ours = { handled: own.handled ?? "no", ...url };
    const event = {
      id: newId(now),
      timestamp: new Date(now).toISOString(),
      ...options.constant,
      user: owner?.wire,
      tags: Object.fromEntries(Object.entries({ ...given, ...ours, ...given }).slice(0, 50)),
      breadcrumbs: crumbs.length ? crumbs.map(onWire) : undefined,
      fingerprint: own.fingerprint && [own.fingerprint].flat().slice(0, 20).map((part) => textOf(part, 500)),
    };
    event.error = toError(error, options, own.stack, (what) => tellTrimmed(event, what));
    if (Object(error) === error) captured.add(error);
    const { beforeSend } = options;
    return transport.submit(event.id, () => encode(event, beforeSend), owner?.ready) ? event.id : null;
  } finally {
    isCapturing = false;
  }
}

/** If `beforeSend` throws, the event is lost: it may be there to remove secrets. */
function encode(event, beforeSend) {
  return quietly(() => {
    const sent = beforeSend(event);
    return sent && (fitEvent(sent) ?? warn("an event is lost: it is too large"));
  });
}

export function captureException(error, own) {
  const stack = new Error().stack?.split("\n").filter((line) => line !== "Error").slice(1).join("\n");
  return afterInit(() => capture(error, { ...own, stack, handled: "yes" }), null);
}

export const setUser = (value) => afterInit(() => { user = value && toUser(value, options.identity); });
export const setTags = (more) => afterInit(() => { tags = mergeTags(tags, more); });
export const setTag = (key, value) => setTags({ [key]: value });
export const clearTags = () => { tags = {}; };
export const addBreadcrumb = (crumb) =>
  afterInit(() => { crumbs = [...crumbs, toCrumb(Date.now(), crumb)].slice(-options.breadcrumbCapacity); });
export const getBreadcrumbs = () => quietly(() => crumbs.map(forClient), []);
export const clearBreadcrumbs = () => { crumbs = []; };
export const track = (name, data) => {
  if (options?.trackAutoBreadcrumb) addBreadcrumb({ type: "track", message: name, data });
};
export const flush = async (timeoutMs = 5000) => transport?.flush(timeoutMs) ?? true;

export async function close(timeoutMs = 2000) {
  const flushing = flush(timeoutMs);
  [options, transport, crumbs] = [null, null, []];
  return flushing;
}
