"""A page with Sentry's SDK and our transport reports to us, in a real browser."""

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.unit.libraries.sentry_sdks import bundled_page, check, needs_sdks
from tests.unit.libraries.test_javascript import accepted
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import ingest_server

pytestmark = [pytest.mark.slow, needs_sdks]


@pytest.fixture
def page_address(tmp_path: Path) -> Iterator[str]:
    """The address of a page with the SDK."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text('<button>Pay</button><script type="module" src="page.js"></script>')
    (pages / "page.js").write_text(bundled_page(tmp_path), encoding="utf-8")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_with_the_sdk_for_browsers_reports(browser: Browser, page_address: str) -> None:
    page = browser.new_page()
    page.goto(page_address)
    with ingest_server() as ingest:
        page.evaluate("(dsn) => begin(dsn)", ingest.url.replace("://", f"://{TOKEN}@") + "/1")
        check([json.loads(event) for event in accepted(ingest)], in_page=True)
    page.close()
