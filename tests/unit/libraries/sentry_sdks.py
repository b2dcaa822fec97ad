"""Sentry's SDKs for JavaScript: where they are installed, recorded events of theirs, and what must arrive of them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.servers import CACHE

FOLDER = Path(__file__).parent
LIBRARY = FOLDER.parents[2] / "svc-js"
MODULES = CACHE / "sentry" / "node_modules"
needs_sdks = pytest.mark.skipif(
    not (MODULES / "@sentry").is_dir(),
    reason="npm install --prefix .cache/sentry @sentry/browser@11 @sentry/node@11 esbuild",
)
RECORDED = FOLDER / "sentry_events.json"
"""By SDK the events that its transport gets of `sentry_acts.mjs`, without what is no part of an event here."""


def application(folder: Path) -> Path:
    """The programs of `FOLDER` with the SDKs and our transport."""
    for program in FOLDER.glob("sentry_*.mjs"):
        (folder / program.name).write_bytes(program.read_bytes())
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "@sentry").symlink_to(MODULES / "@sentry")
    (folder / "node_modules" / "svc-js").symlink_to(LIBRARY)
    return folder


def bundled_page(folder: Path) -> str:
    """`sentry_page.mjs` as one script."""
    page = application(folder) / "sentry_page.mjs"
    esbuild = [str(MODULES / ".bin" / "esbuild"), str(page), "--bundle", "--format=esm", "--log-level=error"]
    return subprocess.run(esbuild, check=True, capture_output=True, text=True).stdout


def check(events: list[dict[str, Any]], *, in_page: bool) -> None:
    """Whether these events are those of `sentry_acts.mjs`."""
    sent = {event["error"]["message"]: event for event in events}
    assert len(sent) == len(events) == 5
    for event in events:
        assert event["release"] == "shop@1.4.2+318"
        assert (event["environment"], event["app"]["version"], event["app"]["build"]) == (
            "staging",
            "1.4.2",
            "318",
        )
        assert len(event["traceId"]) == 32
    assert {message: (event["error"]["type"], event["tags"]["level"]) for message, event in sent.items()} == {
        "can't pay 7": ("RangeError", "fatal"),
        "all failed\n- TypeError: first\n- Error: second": ("AggregateError", "error"),
        "only a message": ("Message", "info"),
        "a text": ("Error", "error"),
        "uncaught": ("Error", "error" if in_page else "fatal"),
    }
    assert {message for message, event in sent.items() if event["tags"]["handled"] == "no"} == {"uncaught"}
    event = sent["can't pay 7"]
    assert event["user"] == {"id": "42", "name": "jo"}
    assert event["tags"]["plan"] == "pro"
    assert event["fingerprint"] == ["pay"]
    assert event["error"]["cause"]["type"] == "CardError"
    assert event["error"]["cause"]["message"] == "no card"
    file = "page.js" if in_page else "sentry_acts.mjs"
    stack = [(frame["function"], frame["file"], frame["inApp"]) for frame in event["error"]["stack"][:2]]
    assert stack == [("Cart.pay", file, True), ("act", file, True)]
    assert "function" not in sent["uncaught"]["error"]["stack"][0]
    group = next(event for message, event in sent.items() if message.startswith("all failed"))
    assert "fingerprint" not in group
    assert group["error"]["cause"]["type"] == "TypeError"
    assert "cause" not in group["error"]["cause"]
    crumbs = [crumb["data"] for crumb in event["breadcrumbs"]]
    request = crumbs[-3]
    assert request.pop("url").endswith("/api?token=***" if in_page else "/api")
    assert crumbs[-3:] == [
        {"method": "GET", "status": request["status"]},
        {"level": "warning", "message": "slow"},
        {"level": "warning", "message": "full", "category": "cart", "items": 3},
    ]
    before = ["nav", "user"] if in_page else []
    assert [crumb["type"] for crumb in event["breadcrumbs"]] == [*before, "net", "log", "custom"]
    if in_page:
        assert crumbs[:2] == [
            {"from": "/", "to": "/cart?key=***"},
            {"action": "click", "target": "body > button"},
        ]
        assert event["tags"]["transaction"] == "/cart"
        assert event["tags"]["url"].endswith("/cart?key=***")
