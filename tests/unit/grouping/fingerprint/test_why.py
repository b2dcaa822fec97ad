"""Why an event is grouped so, in sentences."""

import json
from typing import Any

import pytest

from grouping.fingerprint import why
from grouping.fingerprint.event_view import GroupingEvent
from tests.unit.grouping.fingerprint.events import decode, event, frame, grouped, samples
from tests.unit.grouping.fingerprint.test_reports import REPORTS

HASHED = frame("pay", "https://shop.example/chunk-zq81mvw4.js", 1, 2210)
BUILT = frame("sendOffline", "main.jsbundle", 20, 20970)


def sentences(sent: dict[str, Any]) -> list[str]:
    return why(decode(json.dumps(sent)), grouped(sent).rule)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (event(stack=[HASHED]), "`zq81mvw4` is a hash that a bundler makes of the contents."),
        (
            event("E", stack=[frame("shop.cart$total$fn__12345.invoke", "cart.clj")], platform="android"),
            "`fn__12345` is numbered by Clojure.",
        ),
        (
            event("E", stack=[frame("Cart.lambda$load$0", "Cart.java")], platform="android"),
            "`lambda$load$0` is the method of a lambda.",
        ),
        (
            event("E", stack=[frame("Orders.load", "src/a.js")]),
            "`Orders.load` is read as `load`: the rest differs by engine, compiler or build.",
        ),
        (event("E", stack=[frame("total/<", "src/a.js")]), "`total/<` is no name in the source."),
        (
            event("*errors.errorString", stack=[frame("shop.Total", "total.go")]),
            "The message counts: the app worded it.",
        ),
        (
            event("SIGABRT", stack=[frame("shop.Total", "total.go")]),
            "The message doesn't count: that of a native crash has its address.",
        ),
        (
            event("E", stack=[frame("load", "/srv/shop/releases/41/main.py")], platform="python"),
            "`releases/41` is a folder that a deployment makes.",
        ),
        (
            event("KeyError", stack=[frame("load", "shop/main.py")], platform="python"),
            "The message doesn't count: the runtime raised this error and worded it.",
        ),
        (
            event("E", stack=[frame("load", "shop/main.py")], platform="python"),
            "The message counts: the app worded it.",
        ),
        (
            event("E", stack=[frame("load", "lib/a.py", in_app=False)], platform="python"),
            "`load in lib/a.py` decided: the topmost frame of a library, since none is the app's.",
        ),
        (event(stack=[BUILT]), "`bundle` decided: the file of the topmost frame of the app."),
        (
            event("TypeError", "x is not iterable", [frame("pay", "src/pay.js")]),
            "Engines word this fault differently: it is `not iterable`.",
        ),
        (event("E", "lost"), "No frame tells where it failed, so the message decided."),
        (event(fingerprint=["a"]), "The client's fingerprint decided."),
    ],
)
def test_a_sentence_names_the_frame_and_the_fact(sent: dict[str, Any], sentence: str) -> None:
    assert sentence in sentences(sent)


def test_every_event_has_a_reason() -> None:
    events: list[GroupingEvent] = [decode(line) for line in samples()]
    for report in REPORTS:
        assert all(map(sentences, report["events"]))
    assert all(why(one, "stack") for one in events)


@pytest.mark.parametrize("top", [("Cart.pay", "src/pay.js", 7), ("sendOffline", "main.jsbundle", 20, 20970)])
@pytest.mark.parametrize("message", ["lost", "undefined is not an object"])
def test_the_deciding_names_are_parts_of_the_fingerprint(top: tuple[Any, ...], message: str) -> None:
    sent = event("TypeError", message, [frame(*top)])
    names = [one.split("`")[1] for one in sentences(sent) if "` decided" in one or "` counts" in one]
    parts = [part.partition(" ")[2] for part in grouped(sent).parts]
    assert names
    assert set(names) <= set(parts)
