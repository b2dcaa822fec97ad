/** The scope: user, tags and breadcrumbs (protocol, 2.11). */

export const NOTICE = "svc: ";
const told = new Set();

export function warn(message) {
  if (!told.has(message)) console.warn(NOTICE + message);
  told.add(message);
}

/** The server counts code points, and replaces lone surrogates. */
export function clip(text, limit = 2048) {
  if (text.length > limit) {
    const characters = [...text.slice(0, 2 * limit + 2)];
    if (characters.length > limit) text = `${characters.slice(0, limit - 1).join("")}…`;
  }
  return text.replace(/[\ud800-\udfff]/gu, "\ufffd");
}

export function textOf(value, limit) {
  try {
    return clip(hasParts(value) ? JSON.stringify(plain(value)) : String(value), limit);
  } catch {
    return "<unreadable>";
  }
}

function hasParts(value) {
  if (typeof value !== "object" || !value) return false;
  return Array.isArray(value) || !value.toString || String(value) === "[object Object]";
}

/** JSON of bounded size. */
export function plain(value) {
  let left = 8192;
  const text = (part, limit = 2048) => {
    const cut = textOf(part, Math.max(1, Math.min(limit, left)));
    left -= cut.length;
    return cut;
  };
  const read = (part, depth) => {
    if (part == null) return null;
    if (typeof part === "boolean" || Number.isFinite(part)) return part;
    if (!hasParts(part)) return text(part);
    if (depth === 5) return "…";
    const isList = Array.isArray(part);
    const parts = [];
    for (const [key, inner] of Object.entries(part)) {
      if (parts.length === 50 || left <= 0) {
        parts.push(["…", isList ? "…" : "cut"]);
        break;
      }
      parts.push([isList ? key : text(key, 200), read(inner, depth + 1)]);
    }
    return isList ? parts.map(([, inner]) => inner) : Object.fromEntries(parts);
  };
  return read(value, 0);
}

const SECRET_ENDING = /(token|key|password|secret|passwd|pwd|signature|sig|credential|auth|authorization)$/;
const SECRET_NAME = /^(code|jwt|otp|session(_?id)?|sid|ticket)$/;
const SECRET_VALUE = /(token|key|password|secret|signature)\s*[=:]|[^\s@]@([^\s@./:]+\.)+[^\s@./:\d_]{2}/i;

export function scrub(url) {
  const whole = url.replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/?#]*@/i, "$1//").split("#", 1)[0];
  const [, path, query] = /^([^?]*)(.*)$/s.exec(whole);
  return clip(path + query.replace(/([^?&;=]*)=([^&;]+)/g, (pair, name, value) => {
    const plainName = decoded(name).trim().replace(/[[\]]+$/, "").toLowerCase();
    const isNamed = SECRET_ENDING.test(plainName) || SECRET_NAME.test(plainName);
    return isNamed || SECRET_VALUE.test(decoded(value)) ? `${name}=***` : pair;
  }));
}

function decoded(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
}

/** The user as sent. Of `linkBy` only hashes are kept, which are there when `ready` is settled. */
export function toUser(user, identity) {
  mustBeObject(user);
  const { id, name, anonymous, linkBy } = user;
  const wire = {};
  if (id != null) wire.id = textOf(id);
  if (name != null) wire.name = textOf(name);
  if (anonymous != null) wire.anonymous = Boolean(anonymous);
  const ready = identity && linkBy && linkHashes(linkBy).then(
    (hashes) => { if (Object.keys(hashes).length) wire.linkHashes = hashes; },
    () => warn("linkBy needs WebCrypto, which only https pages have"),
  );
  return { wire, ready };
}

export function mergeTags(tags, more) {
  mustBeObject(more);
  const merged = new Map(Object.entries(tags));
  for (const [key, value] of Object.entries(more)) {
    const name = clip(key, 64);
    if (value == null) merged.delete(name);
    else if (merged.has(name) || merged.size < 50) merged.set(name, textOf(value, 200));
    else warn("an event has at most 50 tags");
  }
  return Object.fromEntries(merged);
}

function mustBeObject(value) {
  if (Object(value) !== value) throw new TypeError(`${textOf(value, 64)} is no object`);
}

const trim = (value) => value.trim();
const lower = (value) => value.trim().toLowerCase();
const phone = (value) => `+${value.replace(/[^0-9]+/g, "")}`;
const NORMALISERS = {
  __proto__: null, email: lower, phone, username: lower, googleSub: trim, appleSub: trim, metaSub: trim,
};

/** An empty value isn't hashed: that would link everyone who left the field empty. */
export async function linkHashes(linkBy) {
  const hashes = [];
  for (const [key, value] of Object.entries(linkBy).slice(0, 20)) {
    const text = value == null ? "" : (NORMALISERS[key] ?? String)(String(value));
    if (text === "" || text === "+") continue;
    const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
    hashes.push([clip(key, 64), Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")]);
  }
  return Object.fromEntries(hashes);
}

export function toCrumb(at, input) {
  if (typeof input === "string") input = { message: input };
  mustBeObject(input);
  const { message, level, type = "custom", data, ...more } = input;
  const crumb = { at, type, data: { ...plain(more), ...objectOf(data) } };
  if (!SHAPES[type]) {
    crumb.type = "custom";
    crumb.data = { type: textOf(type, 64), ...crumb.data };
  }
  if (message != null) crumb.message = textOf(message);
  if (level != null) crumb.level = textOf(level, 64);
  return crumb;
}

function objectOf(data) {
  const object = data == null ? {} : plain(data);
  return Object(object) === object && !Array.isArray(object) ? object : { value: object };
}

/** The form of section 2.8. */
export function onWire({ at, type, message, level, data }) {
  const [messageKey, keys, defaults] = SHAPES[type];
  const given = { ...(message !== undefined && { [messageKey]: message }), ...(level && { level }) };
  const fields = { ...defaults, ...given, ...data };
  for (const [key, convert] of Object.entries(keys)) {
    const value = fields[key] == null ? undefined : convert(fields[key]);
    if (value === undefined) delete fields[key];
    else fields[key] = value;
  }
  return { timestamp: new Date(at).toISOString(), type: type === "track" ? "custom" : type, data: fields };
}

export function forClient(crumb) {
  const { at, data, ...fields } = crumb;
  return { ...onWire(crumb), ...fields };
}

const text = (value) => textOf(value);
const url = (value) => scrub(textOf(value));
const whole = (value) => {
  const number = Math.round(value === "" ? NaN : value);
  return Number.isSafeInteger(number) ? number : undefined;
};
/** By type: the key of the message, conversions of keys, defaults. */
const SHAPES = {
  __proto__: null,
  nav: ["to", { from: url, to: url }],
  net: ["message", { status: whole, durationMs: whole, method: text, url }],
  log: ["message", { level: text, message: text }, { level: "info", message: "" }],
  user: ["action", { action: text, target: text }],
  track: ["track", {}],
  custom: ["message", {}],
};
