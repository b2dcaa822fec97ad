/** The transport of `@sentry/react-native`. */

import "./react-native.js";

export * from "./sentry-transport.js";
