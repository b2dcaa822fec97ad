/** The transport of `@sentry/node`. */

import "./node.js";

export * from "./sentry-transport.js";
