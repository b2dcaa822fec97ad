/** What an application does with Sentry's SDK, in Node and in a page; `url` answers 404. */

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
  Sentry.captureException("a text");
  Sentry.startSpan({ name: "payment" }, () => {});
  await Sentry.flush();
}
