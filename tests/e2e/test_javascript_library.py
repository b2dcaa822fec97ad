"""The JavaScript library in a real browser: a page takes it from the dashboard and reports each error once."""

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from dashboard.javascript_library import import_map
from tests.e2e.page_server import serving_files
from tests.eventually import eventually
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest, Reply, ingest_server

HTML = """<!doctype html><title>Shop</title>
HASHES
<script type="module">
import * as svc from "DASHBOARD/libraries/svc-js/0.2.0/svc.js";
window.svc = svc;
const given = new URLSearchParams(location.search);
svc.init({
  token: "TOKEN", release: "shop@1.4.2+318", ingestUrl: given.get("ingest"), queue: given.get("queue"),
  identity: true, capture: { network: true, sessions: true, console: true },
});
</script>
<script src="/app.js"></script>""".replace("TOKEN", TOKEN)
DOCUMENT = Path(__file__).parents[2] / "docs/develop/javascript.md"
(POLICY,) = re.findall("Content-Security-Policy: (.+)", DOCUMENT.read_text(encoding="utf-8"))
APP = """
class Cart {
  pay(amount) { throw new RangeError(`can't pay ${amount}`, { cause: new TypeError("no card") }); }
}
const later = (act) => new Promise((resolve) => setTimeout(() => { setTimeout(resolve); act(); }));
const settled = () => new Promise((resolve) => setTimeout(resolve));
const stored = () => new Promise((resolve) => {
  const request = indexedDB.open("svc-js", 1);
  request.onsuccess = () => {
    const count = request.result.transaction("events").objectStore("events").count();
    count.onsuccess = () => { request.result.close(); resolve(count.result); };
  };
});
const storedAre = async (count) => { while (await stored() !== count) await settled(); };
"""


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    with ingest_server() as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    yield made
    made.close()


class _Shop(BaseHTTPRequestHandler):
    """A shop's pages, with a strict policy."""

    dashboard = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/app.js":
            self._answer(200, "text/javascript", APP)
        else:
            page = HTML.replace("HASHES", import_map(self.dashboard)).replace("DASHBOARD", self.dashboard)
            page = page.replace("<script", '<script nonce="R4nd0m"')
            self._answer(404 if path == "/api" else 200, "text/html", page)

    do_POST = do_GET

    def _answer(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header(
            "Content-Security-Policy", POLICY.replace("https://errors.example", "http://127.0.0.1:*")
        )
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """The address of a shop."""
    with serving_files() as dashboard:
        handler = type("Shop", (_Shop,), {"dashboard": dashboard})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        server.server_close()
        thread.join()


def open_shop(context: BrowserContext, shop: str, ingest: Ingest, queue: str = "memory") -> Page:
    page = context.new_page()
    page.goto(f"{shop}/cart?ingest={ingest.url}&queue={queue}&token=secret")
    return page


def messages(ingest: Ingest) -> list[str]:
    return [event["error"]["message"] for event in ingest.events]


def arrived(ingest: Ingest, *expected: str) -> None:
    """Wait until these messages arrived, each once."""
    # In another thread: Playwright has a loop in this one.
    with ThreadPoolExecutor() as pool:
        pool.submit(asyncio.run, eventually(lambda: len(ingest.events) >= len(expected))).result()
    assert sorted(messages(ingest)) == sorted(expected)


def test_errors_arrive_with_what_happened_before(context: BrowserContext, shop: str, ingest: Ingest) -> None:
    page = open_shop(context, shop, ingest)
    page.evaluate("svc.setUser({ id: '42', linkBy: { email: ' Jo@Example.com ' } })")
    page.evaluate("fetch('/api?token=secret').then(settled)")
    page.evaluate(
        """new Promise((resolve) => {
            const request = new XMLHttpRequest();
            request.open("post", "/api?page=2");
            request.onloadend = resolve;
            request.send();
        })"""
    )
    page.evaluate("history.pushState({}, '', '/pay?key=secret'); console.warn('slow', { seconds: 3 })")
    page.evaluate("later(() => new Cart().pay(7))")
    page.evaluate("later(() => Promise.reject(new Error('rejected')))")
    page.evaluate("later(() => { throw 'a text'; })")
    page.evaluate("try { new Cart().pay(8); } catch (error) { svc.captureException(error); }")
    assert page.evaluate("svc.flush()") is True
    arrived(ingest, "can't pay 7", "rejected", "a text", "can't pay 8")
    first, _, text, handled = ingest.events
    assert first["error"]["cause"]["message"] == "no card"
    frame = first["error"]["stack"][0]
    assert (frame["function"], frame["file"], frame["line"], frame["column"]) == ("Cart.pay", "app.js", 3, 23)
    assert (frame["absolutePath"], frame["inApp"]) == (f"{shop}/app.js", True)
    assert text["error"]["type"] == "String"
    assert [event["tags"] for event in (first, handled)] == [
        {"handled": "no", "url": f"{shop}/pay?key=***"},
        {"handled": "yes", "url": f"{shop}/pay?key=***"},
    ]
    assert first["user"] == {
        "id": "42",
        "linkHashes": {"email": "f4e19df2e6c609fbd59a42b9063d0fadf44260218531ea21ad8c575f205c0453"},
    }
    assert [crumb["type"] for crumb in first["breadcrumbs"]] == ["net", "net", "nav", "log"]
    data: list[dict[str, Any]] = [crumb["data"] for crumb in first["breadcrumbs"]]
    assert [data[n].pop("durationMs") >= 0 for n in (0, 1)] == [True, True]
    assert data[:2] == [
        {"method": "GET", "url": "/api?token=***", "status": 404},
        {"method": "POST", "url": "/api?page=2", "status": 404},
    ]
    assert data[2]["to"] == "/pay?key=***"
    assert data[3] == {"level": "warn", "message": 'slow {"seconds":3}'}
    assert first["device"]["osVersion"].startswith("Chrome ")
    assert {request.headers["svc-sdk"] for request in ingest.requests} == {"svc-js/0.2.0"}
    assert "gzip" in {request.headers.get("content-encoding") for request in ingest.requests}


def test_a_page_that_is_left_sends_what_waits(context: BrowserContext, shop: str, ingest: Ingest) -> None:
    page = open_shop(context, shop, ingest)
    last = [f"{number} {'x' * 2000}" for number in range(23)]
    page.evaluate(
        """last => {
            for (const message of last) svc.captureException(new Error(message));
            location.href = "about:blank";
        }""",
        last,
    )
    arrived(ingest, *last)
    # All that browsers let requests send after their page.
    assert 60_000 < sum(len(request.body) for request in ingest.requests) < 65_536
    other = open_shop(context, shop, ingest)
    other.evaluate("svc.captureException(new Error('very last'))")
    other.close(run_before_unload=True)
    arrived(ingest, *last, "very last")


def test_errors_wait_until_the_browser_is_online(context: BrowserContext, shop: str, ingest: Ingest) -> None:
    page = open_shop(context, shop, ingest)
    context.set_offline(True)
    page.evaluate("svc.captureException(new Error('offline'))")
    assert page.evaluate("svc.flush(10)") is False
    context.set_offline(False)
    arrived(ingest, "offline")


def test_the_next_page_sends_what_one_could_not(context: BrowserContext, shop: str, ingest: Ingest) -> None:
    page = open_shop(context, shop, ingest, queue="indexeddb")
    context.set_offline(True)
    page.evaluate("svc.captureException(new Error('kept'))")
    page.evaluate("storedAre(1)")
    page.close()
    context.set_offline(False)
    other = open_shop(context, shop, ingest, queue="indexeddb")
    arrived(ingest, "kept")
    other.evaluate("storedAre(0)")


def test_an_event_that_the_server_refuses_is_not_sent_again(
    context: BrowserContext, shop: str, ingest: Ingest
) -> None:
    ingest.answers.append(Reply(status=401, body={"error": "unauthorized"}))
    page = open_shop(context, shop, ingest)
    warnings: list[str] = []
    page.on("console", lambda message: warnings.append(message.text))
    page.evaluate("svc.captureException(new Error('refused'))")
    assert page.evaluate("svc.flush()") is True
    assert messages(ingest) == ["refused"]
    assert [text for text in warnings if text.startswith("svc: events are lost")]
