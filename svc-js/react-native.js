/** The library in React Native. */

import { AppState, Platform } from "react-native";

import { SOURCES } from "./hooks.js";
import { runtime } from "./svc.js";

export * from "./svc.js";

Object.assign(runtime, {
  options() {
    const { OS, Version, constants: { reactNativeVersion: { major, minor, patch } = {}, Model } = {} } = Platform;
    return {
      device: { os: ["ios", "android"].includes(OS) ? OS : "other", osVersion: String(Version), model: Model },
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
    HermesInternal?.enablePromiseRejectionTracker?.({ allRejections: true, onUnhandled: (_id, reason) => capture(reason) });
  },

  watchEnding(transport) {
    AppState.addEventListener("change", (state) => { if (state === "background") transport()?.leave(); });
  },
});

SOURCES.sessions = (add) => {
  AppState.addEventListener("change", (state) => {
    if (state !== "inactive") add("user", { action: state, target: "app" });
  });
};
