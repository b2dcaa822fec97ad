/** Errors and stacks of V8, SpiderMonkey, JavaScriptCore and Hermes (protocol, 2.6, 2.7). */

import { clip, scrub, textOf } from "./scope.js";

/** `stack` is for a value without one; `trimmed` is called with what is left out. */
export function toError(value, options, stack, trimmed) {
  const links = [];
  const seen = [];
  for (let link = value; !links.length || !(link == null || seen.includes(link)); link = originOf(link)) {
    if (links.length > 10) {
      trimmed("causes");
      break;
    }
    seen.push(link);
    const own = get(link, "stack") || (links.length ? "" : stack);
    const frames = parseStack(own, get(link, "message"), options);
    if (frames.length > 100) {
      trimmed("frames");
      frames.splice(50, frames.length - 100);
    }
    links.push({ type: nameOf(link), message: messageOf(link), stack: frames });
  }
  return links.reduceRight((cause, link) => (cause ? { ...link, cause } : link), null);
}

function get(value, key) {
  try {
    return value[key];
  } catch {
    return undefined;
  }
}

const isError = (value) => typeof value === "object" && typeof get(value, "message") === "string";

/** The class's name, unless a minifier made it. */
function nameOf(value) {
  const own = textOf(get(get(value, "constructor"), "name") ?? value, 200);
  const name = isError(value) ? textOf(get(value, "name") || own, 200) : own;
  return name === "Error" && /^[A-Z]\w\w/.test(own) && own !== "Object" ? own : name;
}

function messageOf(value) {
  if (!isError(value)) return textOf(value, 16384);
  const line = (member) => `\n- ${nameOf(member)}: ${textOf(get(member, "message"), 500)}`;
  return clip(get(value, "message") + membersOf(value).map(line).join(""), 16384);
}

function membersOf(value) {
  const members = isError(value) && get(value, "errors");
  return Array.isArray(members) ? members.slice(0, 10).filter(isError) : [];
}

const originOf = (value) => membersOf(value)[0] ?? get(value, "cause");

export function parseStack(stack, message, options) {
  if (typeof stack !== "string") return [];
  const isV8 = /^\s*at /m.test(stack);
  // V8 and Hermes begin with name and message, whose lines may look like frames.
  const at = isV8 && message ? stack.indexOf(message) : -1;
  const frames = at < 0 || stack.slice(0, at).includes("\n") ? stack : stack.slice(at + message.length);
  const sites = frames.split("\n").map(isV8 ? readV8 : readGecko).filter(Boolean);
  return sites.map((site) => toFrame(site, options));
}

function readV8(text) {
  const [matched, name = "", inner, bare] = /^\s*at (?:(.*?) ?\((.*)\)|(.*))$/.exec(text) ?? [];
  // Code of `eval` has the place of its call: `eval at run (app.js:1:2), <anonymous>:3:4`.
  const location = (inner ?? bare)
    ?.replace(/^async |^eval at .*?\(([^()]+:\d+:\d+)\).*/, "$1")
    // Hermes counts from 0.
    .replace(/^address at (.*:)(\d+)$/, (_, file, at) => file + (+at + 1));
  return matched && [name.replace(/^async /, ""), location];
}

/** `name@location`. */
function readGecko(text) {
  const [matched, name, location] = /^(?:.*\*)?(.*?)@(.*)$/.exec(text) ?? ["", "", text];
  const place = location.replace(/ line (\d+)( > \w+)+(:\d+)*$/, ":$1");
  return (/:\d+$/.test(place) || (matched && place === "[native code]")) && [name, place];
}

export function toFrame([name, location], options) {
  const [, file, line, column] = /^(.*?)(?::(\d+))?(?::(\d+))?$/.exec(location);
  return {
    ...(name && { function: clip(name, 300) }),
    ...locate(file, line > 0, options),
    line: Number(line) || 1,
    ...(column > 0 && { column: Number(column) }),
  };
}

const FOREIGN = /^(node:|[a-z-]+-extension:)|(^|\/)(node_modules|svc-js)\//;

function locate(location, isKnown, { inAppInclude, inAppExclude, root, home }) {
  if (!isKnown || location.startsWith("<")) return { file: location || "<anonymous>", inApp: false };
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):\/\/[^/]*\/?([^?#]*)/i.exec(location) ?? [];
  const isUrl = scheme && scheme !== "file";
  const path = scheme === "file" ? decodeURI(rest).replace(/^(?!\w:)/, "/") : location.replace(/\\/g, "/");
  const local = home && path.startsWith(home) ? `~/${path.slice(home.length)}` : path;
  const absolute = isUrl ? scrub(path) : local;
  const file = isUrl ? rest || "/" : /^(\w:)?\//.test(path) ? relative(path, root) : path;
  const begins = (prefix) => file.startsWith(prefix) || path.startsWith(prefix);
  const inApp = inAppInclude.some(begins) || !(inAppExclude.some(begins) || FOREIGN.test(path));
  return { file: clip(file), inApp, ...(absolute !== file && { absolutePath: clip(absolute) }) };
}

/** Of other files the name: a phone's bundle has a new folder each time. */
function relative(path, root) {
  if (root && path.startsWith(root)) return path.slice(root.length);
  const packages = path.lastIndexOf("/node_modules/");
  return path.slice((packages < 0 ? path.lastIndexOf("/") : packages) + 1);
}
