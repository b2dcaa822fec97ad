"""Sentry's SDKs for JavaScript: where they are installed, recorded events of theirs, and what must arrive of them."""

import functools
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.servers import CACHE

FOLDER = Path(__file__).parent
LIBRARY = FOLDER.parents[2] / "svc-js"
MODULES = CACHE / "sentry" / "node_modules"
needs_sdks = pytest.mark.skipif(
    not (MODULES / "@sentry").is_dir(),
    reason="npm install --prefix .cache/sentry @sentry/{browser,node,react}@11 react react-dom esbuild",
)
RECORDED = FOLDER / "sentry_events.json"
"""By SDK the events that its transport gets of `sentry_acts.mjs`, without what is no part of an event here."""


def application(folder: Path) -> Path:
    """The programs of `FOLDER` with the SDKs and our transport."""
    for program in FOLDER.glob("sentry_*.mjs"):
        (folder / program.name).write_bytes(program.read_bytes())
    (folder / "node_modules").mkdir()
    for module in ("@sentry", "react", "react-dom", "scheduler"):
        (folder / "node_modules" / module).symlink_to(MODULES / module)
    (folder / "node_modules" / "svc-js").symlink_to(LIBRARY)
    return folder


@contextmanager
def serving_page(folder: Path, program: str) -> Iterator[str]:
    """The address of a page whose script is a program of `FOLDER`, bundled."""
    program_file, pages = application(folder) / program, folder / "pages"
    pages.mkdir()
    (pages / "index.html").write_text(
        '<button>Pay</button><div id="root"></div><script type="module" src="page.js"></script>'
    )
    esbuild = [str(MODULES / ".bin" / "esbuild"), str(program_file), "--bundle", "--format=esm"]
    subprocess.run([*esbuild, "--log-level=error", f"--outfile={pages / 'page.js'}"], check=True)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def check(events: list[dict[str, Any]], *, in_page: bool) -> None:
    """Whether these events are those of `sentry_acts.mjs`; `sentry_fields` compares their fields."""
    sent = {event["error"]["message"][:50]: event for event in events}
    assert len(sent) == len(events) == 11
    for event in events:
        assert (event["app"]["version"], event["app"]["build"]) == ("1.4.2", "318")
    assert {message: (event["error"]["type"], event["tags"]["level"]) for message, event in sent.items()} == {
        "can't pay 7": ("RangeError", "fatal"),
        "all failed\n- TypeError: first\n- Error: second": ("AggregateError", "error"),
        "only a message": ("Message", "info"),
        "order x7 failed": ("Message", "warning"),
        "a text": ("Error", "error"),
        "Object captured as exception with keys: code": ("Error", "error"),
        "long " + "m" * 45: ("Error", "error"),
        "no stack": ("RangeError", "error"),
        "evaluated": ("SyntaxError", "error"),
        "rejected": ("CardError", "error"),
        "uncaught": ("Error", "error" if in_page else "fatal"),
    }
    unhandled = {message for message, event in sent.items() if event["tags"]["handled"] == "no"}
    assert unhandled == {"rejected", "uncaught"}
    event = sent["can't pay 7"]
    file = "page.js" if in_page else "sentry_acts.mjs"
    stack = [(frame["function"], frame["file"], frame["inApp"]) for frame in event["error"]["stack"][:2]]
    assert stack == [("Cart.pay", file, True), ("act", file, True)]
    assert "function" not in sent["uncaught"]["error"]["stack"][0]
    assert sent["order x7 failed"]["fingerprint"] == ["Message", "order %s failed"]
    assert sent["evaluated"]["error"]["stack"][0]["file"] == file
    request = event["breadcrumbs"][-3]["data"]
    assert request["url"].endswith("/api?token=***" if in_page else "/api")
    before = ["nav", "user"] if in_page else []
    assert [crumb["type"] for crumb in event["breadcrumbs"]] == [*before, "net", "log", "custom"]
    if in_page:
        assert event["breadcrumbs"][0]["data"] == {"from": "/", "to": "/cart?key=***"}
        assert event["tags"]["url"].endswith("/cart?key=***")
