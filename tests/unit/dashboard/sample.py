"""A project full of events: the shipped sample moved to a given day, events that show everything, and a hostile one."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Activity, Outcome
from schemas.times import HOUR_MS, iso, parse_iso

SAMPLES = Path(__file__).parents[3] / "cli" / "demo" / "events.jsonl.gz"
SDKS = ("javascript/1.4.0", "javascript/1.3.2", "react-native/0.9.1")
PROJECT = 11
SHOWCASE, HOSTILE, RESOLVED = 1_000_001, 1_000_002, 3
"""Fingerprints."""
HUGE = "long " * 30_000
NASTY = "</script><script>alert(1)</script>\u202egnp.exe\u202c \"'><img src=x onerror=alert(2)> \u0000\u200b {{ 7*7 }}"


class Sent(NamedTuple):
    """An event with the processors' facts about it; `parts` are those of its grouping."""

    event: dict[str, Any]
    fingerprint: int
    sdk: str
    received_ms: int
    parts: list[str]


def issue_of(fingerprint: int) -> str:
    """The issue that a fingerprint opens in the sample's project."""
    return hex64(issue_id(PROJECT, fingerprint))


def events(now_ms: int, *, tame: bool = False) -> Iterator[Sent]:
    """The events; the newest is a minute old. `tame` ones are all harmless."""
    chance = random.Random(7)
    numbers: dict[tuple[str, ...], int] = {}
    for event in map(json.loads, gzip.decompress(SAMPLES.read_bytes()).splitlines()):
        stack = event["error"]["stack"] or [{}]
        top = next((frame for frame in stack if frame.get("inApp")), stack[0])
        key = (event["error"]["type"], top.get("function", ""), top.get("file", "").rpartition("/")[2])
        number = numbers.setdefault(key, len(numbers) + 1)
        # Issues differ in when they live: some are old, some only of today.
        age_hours = chance.expovariate(1 / (20 + 40 * (number % 9)))
        at = now_ms - 60_000 - int(min(age_hours, 24 * 13) * HOUR_MS)
        parts = [event["error"]["type"], f"{key[1] or '<anonymous>'} in {key[2]}"]
        yield Sent(moved(event, at), number, chance.choice(SDKS), at + 800, parts)
    for number in range(90):
        at = now_ms - int((0.2 + number**1.28) * HOUR_MS)
        yield Sent(
            showcase(at, number), SHOWCASE, SDKS[0], at + 800, ["CheckoutError", "pay in src/checkout.ts"]
        )
    if not tame:
        at = now_ms - HOUR_MS
        yield Sent(hostile(at), HOSTILE, SDKS[2], at + 800, [NASTY])


def moved(event: dict[str, Any], at: int) -> dict[str, Any]:
    """The event as if it had happened at `at`."""
    by = at - parse_iso(event["timestamp"])
    crumbs = [
        crumb | {"timestamp": iso(parse_iso(crumb["timestamp"]) + by)}
        for crumb in event.get("breadcrumbs") or []
    ]
    return event | {"id": str(uuid7(at)), "timestamp": iso(at), "breadcrumbs": crumbs}


def frame(function: str, file: str, line: int, *, own: bool = True, **more: Any) -> dict[str, Any]:
    """A frame with a column that differs by line."""
    return {"function": function, "file": file, "line": line, "column": line % 37 + 1, "inApp": own} | more


def showcase(at: int, number: int = 0) -> dict[str, Any]:
    """An event with a cause chain, source context, every breadcrumb type and all optional fields.

    Users, tags and releases differ by `number`.
    """
    pay = frame(
        "Checkout.pay",
        "src/checkout.ts",
        214,
        preContext=[
            "  async pay(cart: Cart, card: Card): Promise<Receipt> {",
            "    const total = cart.total(this.currency);",
            "    if (total.isZero()) return Receipt.free(cart);",
            "    try {",
        ],
        contextLine="      const receipt = await this.gateway.request(charge(card, total));",
        column=42,
        postContext=[
            "    } catch (error) {",
            '      throw new CheckoutError("payment was not taken", { cause: error });',
            "    }",
        ],
    )
    submit = frame(
        "CheckoutForm.onSubmit",
        "src/components/CheckoutForm.tsx",
        88,
        preContext=["    setBusy(true);", "    event.preventDefault();"],
        contextLine="    await checkout.pay(cart, card);",
        column=20,
        postContext=["    setBusy(false);", '    navigate("/thanks");'],
    )
    request = frame("Gateway.request", "src/gateway.ts", 41)
    libraries = [
        frame("callCallback", "node_modules/react-dom/cjs/react-dom.js", 4164, own=False),
        frame("invokeGuardedCallback", "node_modules/react-dom/cjs/react-dom.js", 4213, own=False),
        frame("dispatchEvent", "node_modules/react-dom/cjs/react-dom.js", 9041, own=False),
    ]
    cause = {
        "type": "TimeoutError",
        "message": "no answer from https://pay.example.com/v2/charges after 8000 ms",
        "stack": [frame("AbortSignal.timeout", "node:internal/abort_controller", 118, own=False), request],
    }
    crumbs = [
        (41_200, "nav", {"from": "/cart", "to": "/checkout"}),
        (38_900, "net", {"method": "GET", "url": "https://api.example.com/v2/cart/7731",
                         "status": 200, "durationMs": 143}),
        (30_100, "user", {"action": "click", "target": "input#card-number"}),
        (21_750, "track", {"name": "checkout_step", "step": 2, "variant": "B"}),
        (12_000, "log", {"level": "warning", "message": "card brand could not be recognised"}),
        (8_420, "user", {"action": "click", "target": "button#pay"}),
        (8_100, "net", {"method": "POST", "url": "https://pay.example.com/v2/charges",
                        "status": 504, "durationMs": 8002}),
        (40, "custom", {"message": "retry refused", "attempt": 3}),
        (12, "log", {"level": "error", "message": "payment was not taken"}),
    ]  # fmt: skip
    return {
        "id": str(uuid7(at)),
        "timestamp": iso(at),
        "kind": "error",
        "platform": "javascript",
        "release": "storefront-web@3.5.1+7012" if number < 40 else "storefront-web@3.5.0+6972",
        "environment": "staging" if number % 11 == 10 else "prod",
        "device": {"os": "ios", "osVersion": "18.5", "model": "iPhone 15 Pro", "locale": "de-DE"},
        "app": {
            "version": "3.5.1",
            "build": "7012",
            "framework": {"name": "react-native", "version": "0.79.2"},
        },
        "user": {
            "id": f"u_{48213 + number % 31}",
            "name": "Ada",
            "anonymous": False,
            "linkHashes": {"email": hashlib.sha256(b"ada@example.com").hexdigest()},
        },
        "tags": {
            "tier": ("pro", "free", "pro", "trial")[number % 4],
            "feature": "checkout",
            "payment.provider": ("acme", "acme", "globex")[number % 3],
            "experiment": "AB"[number % 2],
        },
        "breadcrumbs": [
            {"timestamp": iso(at - before), "type": kind, "data": data} for before, kind, data in crumbs
        ],
        "error": {
            "type": "CheckoutError",
            "message": "payment was not taken: the provider did not answer in time",
            "stack": [pay, submit, *libraries, frame("main", "src/index.tsx", 12)],
            "cause": cause,
        },
        "fingerprint": ["checkout", "timeout"],
        "traceId": None,
        "cartSize": 4,
    }


def hostile(at: int) -> dict[str, Any]:
    """An event in which every text tries to break the page, and some are endless."""
    return showcase(at) | {
        "release": NASTY,
        "environment": NASTY,
        "platform": "javascript",
        "device": {"os": "ios", "osVersion": NASTY, "model": HUGE, "locale": NASTY},
        "user": {"id": NASTY, "name": HUGE},
        "tags": {NASTY[:60]: NASTY, "huge": "x" * 200, "is": "tag", 'quo"te': 'val"ue\\'},
        "breadcrumbs": [
            {"timestamp": "never", "type": "nav", "data": {"from": NASTY, "to": HUGE}},
            {"timestamp": iso(at), "type": NASTY, "data": {"a": {"b": [NASTY]}}},
            {
                "timestamp": iso(at),
                "type": "net",
                "data": {"method": NASTY, "url": "javascript:alert(3)", "status": "x"},
            },
        ],
        "error": {
            "type": NASTY,
            "message": NASTY + HUGE,
            "stack": [
                {"function": NASTY, "file": NASTY, "line": 3, "column": -1, "inApp": True, "preContext": [NASTY, HUGE]},
                {"file": HUGE, "line": "three", "inApp": "yes"},
            ],
        },
        NASTY: NASTY,
    }  # fmt: skip


def activities(now_ms: int) -> list[Activity]:
    """A life of the showcase's issue."""
    lines: tuple[tuple[Any, str, int, dict[str, Any]], ...] = (
        ("created", "", 80, {}),
        ("resolved", "admin", 60, {"resolvedIn": "storefront-web@3.5.0+6972"}),
        ("regressed", "", 30, {"release": "storefront-web@3.5.1+7012"}),
    )
    return [
        Activity(kind, issue_of(SHOWCASE), str(PROJECT), kind, by, iso(now_ms - hours * HOUR_MS), data)
        for kind, by, hours, data in lines
    ]


EXAMPLES = {
    "tag keys per event": (
        "tags: at most 50 tag keys per event"
        " (release storefront-web@4.2.0+1187, event 01998c1e-7d2f-7c3a-9b1e-3f0a5d6c7e80)"
    ),
    "schema: error.cause.stack.line": (
        "error.cause.cause.stack[12].line: expected an integer from 1 to 9007199254740991"
        " (release storefront-web@4.2.0+1187)"
    ),
    "body": "body: malformed JSON: Input data was truncated",
}
"""Responses to senders, by reason."""


def outcomes(now_ms: int) -> list[Outcome]:
    """Two weeks of outcomes."""
    chance = random.Random(3)
    counts: list[Outcome] = []

    def count(hour: int, outcome: Any, sdk: str, reason: str, most: int, least: int = 0) -> None:
        at, number = iso(now_ms - hour * HOUR_MS), chance.randrange(least, most)
        example = EXAMPLES.get(reason, "") if outcome == "invalid" else ""
        counts.append(Outcome(str(PROJECT), at, sdk, outcome, reason, number, "edge-0", len(counts), example))

    for hour in range(0, 14 * 24, 3):
        for sdk in SDKS:
            count(hour, "accepted", sdk, "", 2600, 200)
            count(hour, "duplicate", sdk, "", 90)
        count(hour, "invalid", SDKS[2], "release", 120)
        for reason in EXAMPLES:
            count(hour, "invalid", SDKS[hour % 2], reason, 30, 1)
        if hour % 48 == 0:
            count(hour, "revokedToken", SDKS[1], "k3x9", 40, 1)
            count(hour, "rateLimited", SDKS[1], "perToken", 400)
            count(hour, "tooLarge", SDKS[0], "body", 8)
    return counts
