/** An application of React that reports by `@sentry/react` to us. */

import * as Sentry from "@sentry/react";
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { svcTransport } from "svc-js/sentry-transport";

function Price() {
  throw new TypeError("no price");
}

const Shop = () => createElement("main", {}, createElement(Price));

globalThis.begin = async (dsn) => {
  Sentry.init({ dsn, transport: svcTransport, release: "shop@1.4.2+318" });
  const shown = new Promise((resolve) => {
    const boundary = { fallback: createElement("p", {}, "sorry"), onError: () => setTimeout(resolve) };
    createRoot(document.querySelector("#root")).render(
      createElement(Sentry.ErrorBoundary, boundary, createElement(Shop)),
    );
  });
  await shown;
  await Sentry.flush();
};
