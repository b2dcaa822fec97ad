/** A transport for Sentry's SDKs that sends their errors as events of this protocol. */

import { clip, mergeTags, NOTICE, onWire, scrub, textOf, toCrumb, toUser, warn } from "./scope.js";
import { toFrame } from "./stack.js";
import { newId, resolve, runtime, VERSION } from "./svc.js";
import { createTransport, fitEvent } from "./transport.js";

let last = null;
let isWatching = false;

/** `url` is made of the DSN, which has address and token, and is never requested. */
export function svcTransport({ url }) {
  const [, ingestUrl, token] = /^(.+)\/api\/\d+\/envelope\/.*\bsentry_key=(\w+)/.exec(url) ?? [];
  if (!token) warn("the DSN isn't https://TOKEN@HOST/1, or there is a tunnel: nothing will be reported");
  let transport = null;
  const resolved = new Map();

  function optionsOf({ release = "", dist, environment }) {
    if (dist && !release.includes("+")) release += `+${dist}`;
    const key = `${release} ${environment}`;
    if (!resolved.has(key)) resolved.set(key, resolve({ token, ingestUrl, release, environment }));
    return resolved.get(key);
  }

  function sendEvent(sent) {
    const options = optionsOf(sent);
    last = transport ??= createTransport(options, `svc-js/${VERSION}`);
    const event = toEvent(sent, options);
    transport.submit(event.id, () => fitEvent(event) ?? warn("an event is lost: it is too large"));
  }

  if (!isWatching) runtime.watchEnding(() => last);
  isWatching = true;
  return {
    async send([, items]) {
      try {
        for (const [{ type }, payload] of items) {
          if (type !== "event") leaveOut(type);
          else if (token) sendEvent(payload);
        }
      } catch (error) {
        warn(`an event of Sentry's SDK is lost: ${textOf(error)}`);
      }
      return {};
    },
    flush: async (timeoutMs) => (await transport?.flush(timeoutMs || 5000)) ?? true,
  };
}

function leaveOut(what) {
  if (what !== "client_report") warn(`left out, as events have no place for it: ${what}`);
}

function toEvent(sent, options) {
  const at = Math.round(sent.timestamp * 1000);
  const { values = [] } = sent.exception ?? {};
  const { user, request, contexts, logentry } = sent;
  const { extra: { __serialized__, arguments: _, ...extra } = {} } = sent;
  if (Object.keys(extra).length) leaveOut("extra");
  if (user?.email || user?.ip_address) leaveOut("email or IP address of the user");
  if (values.some(({ stacktrace }) => stacktrace?.frames?.some(({ vars }) => vars))) leaveOut("vars");
  const own = mergeTags({}, {
    handled: values.at(-1)?.mechanism?.handled === false ? "no" : "yes",
    level: sent.level,
    url: request?.url && scrub(request.url),
    transaction: sent.transaction,
  });
  const tags = mergeTags({}, sent.tags ?? {});
  const fingerprint = sent.fingerprint ?? (logentry?.params && ["Message", logentry.message]);
  const parts = fingerprint?.slice(0, 20).map((part) => textOf(part, 500));
  const { wire } = toUser({ id: user?.id, name: user?.username });
  return {
    id: newId(at),
    timestamp: new Date(at).toISOString(),
    ...options.constant,
    user: Object.keys(wire).length ? wire : undefined,
    tags: Object.fromEntries(Object.entries({ ...tags, ...own, ...tags }).slice(0, 50)),
    breadcrumbs: sent.breadcrumbs?.slice(-100).filter((crumb) => !isOurs(crumb, options)).map(toBreadcrumb),
    // One with the default grouping in it can't be said.
    fingerprint: /{{ *default *}}/.test(parts) ? undefined : parts,
    traceId: contexts?.trace?.trace_id,
    error: toError(sent, options),
  };
}

/** The last value is what was thrown; of an AggregateError the first member is the cause. */
function toError({ exception, logentry = {}, message = logentry.message ?? "", logger }, options) {
  for (const param of logentry.params ?? []) message = message.replace("%s", () => textOf(param));
  const values = exception?.values?.length ? exception.values : [{ type: logger, value: message }];
  const links = [];
  for (let link = values.at(-1); link && links.length <= 10; link = causeOf(link, values)) {
    const frames = (link.stacktrace?.frames ?? []).slice(-100).reverse();
    links.push({
      type: textOf(link.type ?? "Message", 200),
      message: clip([link.value ?? "", ...membersOf(link, values)].join("\n- "), 16384),
      stack: frames.map((frame) => frameOf(frame, options)),
    });
  }
  return links.reduceRight((cause, link) => (cause ? { ...link, cause } : link), null);
}

function partsOf({ mechanism }, values) {
  const id = mechanism?.exception_id ?? NaN;
  return values.filter((part) => part.mechanism?.parent_id === id).reverse();
}

const isMember = ({ mechanism }) => /\[\d+\]$/.test(mechanism.source);

function causeOf(link, values) {
  const parts = partsOf(link, values);
  if (link.mechanism?.exception_id === undefined) return values[values.indexOf(link) - 1];
  return parts.find(isMember) ?? parts[0];
}

function membersOf(link, values) {
  const members = partsOf(link, values).filter(isMember).slice(0, 10);
  return members.map(({ type, value }) => `${type}: ${textOf(value ?? "", 500)}`);
}

function frameOf({ function: name = "?", filename = "<anonymous>", lineno, colno, in_app }, options) {
  const place = [filename, lineno, lineno && colno].filter(Boolean).join(":")
    .replace(/^eval at .*?\(([^()]+:\d+:\d+)\).*/, "$1"); // the place of its call, as in our own events
  const frame = toFrame([name.replace(/^async |^\?$/, ""), place], options);
  return { ...frame, inApp: frame.inApp && in_app !== false };
}

/** A warning of this library, or its request. */
function isOurs({ message, data }, { ingestUrl }) {
  return String(message).startsWith(NOTICE) || String(data?.url).startsWith(`${ingestUrl}/v1/`);
}

function toBreadcrumb({ timestamp, category = "", type, level, message, data = {} }) {
  const crumb = { message, level, data: { ...(category && { category }), ...data } };
  if (type === "http" || /^(fetch|xhr)$/.test(category)) {
    const { method = data["http.request.method"] ?? data["http.method"], url, status_code: status } = data;
    Object.assign(crumb, { type: "net", level: null, data: { method, url, status } });
  } else if (category === "navigation") {
    Object.assign(crumb, { type: "nav", level: null, data: { from: data.from, to: data.to } });
  } else if (category === "console") {
    Object.assign(crumb, { type: "log", data: null });
  } else if (/^(ui\.|touch$)/.test(category)) {
    const [action, target] = [category.replace("ui.", ""), message];
    Object.assign(crumb, { type: "user", message: null, level: null, data: { action, target } });
  }
  return onWire(toCrumb(Math.round(timestamp * 1000), crumb));
}
