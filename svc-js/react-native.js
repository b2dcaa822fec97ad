/** The library in React Native. */

import { AppState, Platform } from "react-native";

import { SOURCES } from "./hooks.js";
import { runtime } from "./svc.js";

export * from "./svc.js";

Object.assign(runtime, {
  options() {
    const { OS, Version, constants } = Platform;
    const { major, minor, patch } = constants.reactNativeVersion;
    const os = OS === "ios" || OS === "android" ? OS : "other";
    return {
      device: { os, osVersion: String(Version), model: constants.Model },
      framework: { name: "react-native", version: [major, minor, patch].join(".") },
    };
  },

  watchErrors(capture) {
    const { ErrorUtils, HermesInternal, __DEV__: isDevelopment } = globalThis;
    const previous = ErrorUtils.getGlobalHandler();
    ErrorUtils.setGlobalHandler((error, isFatal) => {
      capture(error);
      previous(error, isFatal);
    });
    // In development React Native has a tracker, which shows rejections.
    if (isDevelopment) return;
    const onUnhandled = (_id, reason) => capture(reason);
    HermesInternal?.enablePromiseRejectionTracker?.({ allRejections: true, onUnhandled });
  },

  watchEnding(transport) {
    AppState.addEventListener("change", (state) => { if (state === "background") transport()?.leave(); });
  },
});

const { network } = SOURCES;

SOURCES.network = (add) => {
  const { fetch } = globalThis;
  network(add);
  globalThis.fetch = fetch; // it is made of XMLHttpRequest
};

SOURCES.sessions = (add) => {
  AppState.addEventListener("change", (state) => {
    if (state !== "inactive") add("user", { action: state, target: "app" });
  });
};
