"""An application that reports by sentry-sdk to us, and some errors by `svc` too."""

import asyncio
import contextlib
import json
import logging
import os
import threading
import urllib.request
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import sentry_sdk
from fastapi import FastAPI
from sentry_sdk.envelope import Envelope

import svc
from svc.sentry import SvcTransport


class Recorded(SvcTransport):
    """Writes the SDK's events into a file too."""

    def capture_envelope(self, envelope: Envelope) -> None:
        if event := envelope.get_event():
            with Path(os.environ["RECORD"]).open("a") as file:
                file.write(json.dumps(event, default=str) + "\n")
        super().capture_envelope(envelope)


sentry_sdk.init(
    dsn=os.environ["DSN"],
    transport=Recorded,
    release="shop@1.4.2",
    dist="318",
    environment="staging",
    traces_sample_rate=1.0,
)
svc.init(release="shop@1.4.2+318", environment="staging", capture={"errors": False})
app = FastAPI()


def report(error: Exception) -> None:
    sentry_sdk.capture_exception(error, level="fatal", fingerprint=["pay", 7])
    svc.capture_exception(error, tags={"by": "svc"})


class Cart:
    def pay(self, amount: int) -> float:
        def charge(card: int) -> float:
            try:
                return amount / card
            except ZeroDivisionError as error:
                error.add_note("a note")
                raise LookupError("no card") from error

        return charge(0)


def raise_group() -> None:
    raise ExceptionGroup("all", [TypeError("first"), ExceptionGroup("others", [KeyError("second")])])


@app.get("/orders/{number}")
def order(number: int) -> None:
    raise RuntimeError(f"no order {number}")


async def ask(path: str) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        pass

    headers = [(b"host", b"shop.example")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"key=secret", "headers": headers}
    with contextlib.suppress(RuntimeError):
        await app(scope, receive, send)


sentry_sdk.set_user({"id": 42, "username": "jo", "email": "jo@example.com"})
sentry_sdk.set_tag("plan", "pro")
sentry_sdk.set_extra("amount", 7)
logging.getLogger("stock").warning("slow: %d", 3)
urllib.request.urlopen(os.environ["SITE"] + "/api").close()
sentry_sdk.add_breadcrumb(category="cart", message="full", level="warning", data={"items": 3})
try:
    Cart().pay(7)
except LookupError as error:
    report(error)
try:
    raise_group()
except ExceptionGroup as error:
    report(error)
sentry_sdk.set_tag("plan", None)
logging.getLogger("pay").error("order %s failed", "x7")
sentry_sdk.capture_message("only a message")
asyncio.run(ask("/orders/8"))
with sentry_sdk.new_scope() as scope:
    scope.set_tag("retries", 2)
    scope.set_tag("paid", False)
    scope.set_user({"id": None, "username": "guest"})
    scope.set_transaction_name("checkout")
    scope.fingerprint = ["{{ default }}", "long"]
    sentry_sdk.capture_exception(OSError("long " + "m" * 20_000))
try:
    exec("assert False, 'executed'")
except AssertionError as error:
    sentry_sdk.capture_exception(error)
try:
    try:
        int("x")
    except ValueError:
        raise KeyError("in its handling")  # noqa: B904
except KeyError:
    logging.getLogger("pay").exception("payment %d failed", 7)
failing = threading.Thread(target=[].pop)
failing.start()
failing.join()


def fall(depth: int) -> None:
    if depth:
        fall(depth - 1)
    raise RecursionError("deep")


try:
    fall(150)
except RecursionError as error:
    sentry_sdk.capture_exception(error)
svc.flush()
int("nothing")
