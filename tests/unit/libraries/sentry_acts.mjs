/** What an application does with Sentry's SDK, in Node and in a page; `url` answers 404. An uncaught error follows. */

class CardError extends Error {
  name = "CardError";
}

class Cart {
  pay(amount) {
    throw new RangeError(`can't pay ${amount}`, { cause: new CardError("no card") });
  }
}

export async function act(Sentry, url) {
  await fetch(`${url}/api?token=secret`);
  console.warn("slow");
  Sentry.setUser({ id: 42, username: "jo", email: "jo@example.com" });
  Sentry.setTag("plan", "pro");
  Sentry.addBreadcrumb({ category: "cart", message: "full", level: "warning", data: { items: 3 } });
  try {
    new Cart().pay(7);
  } catch (error) {
    Sentry.captureException(error, { level: "fatal", fingerprint: ["pay"], extra: { amount: 7 } });
  }
  const members = [new TypeError("first"), new Error("second", { cause: new Error("deep") })];
  Sentry.captureException(new AggregateError(members, "all failed"), { fingerprint: ["{{ default }}", "all"] });
  Sentry.captureMessage("only a message");
  Sentry.captureMessage(Sentry.parameterize`order ${"x7"} failed`, "warning");
  Sentry.captureException("a text");
  Sentry.captureException({ code: 7 });
  Sentry.captureException(Object.assign(new RangeError("no stack"), { stack: "" }));
  try {
    new Function("throw new SyntaxError('evaluated')")();
  } catch (error) {
    Sentry.captureException(error);
  }
  Promise.reject(new CardError("rejected"));
  await new Promise((resolve) => setTimeout(resolve));
  Sentry.withScope((scope) => {
    scope.setTags({ retries: 2, isPaid: false, "pay.step": "card" });
    scope.setTransactionName("checkout");
    scope.setUser({ username: "guest" });
    Sentry.captureException(new Error("long " + "m".repeat(16_400)));
  });
  Sentry.startSpan({ name: "payment" }, () => {});
  await Sentry.flush();
}
