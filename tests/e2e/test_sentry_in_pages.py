"""A page with Sentry's SDK and our transport reports to us, in a real browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.unit.libraries.sentry_fields import check_fields
from tests.unit.libraries.sentry_sdks import check, needs_sdks, serving_page
from tests.unit.libraries.test_javascript import accepted
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest, ingest_server

pytestmark = [pytest.mark.slow, needs_sdks]


def dsn(ingest: Ingest) -> str:
    return ingest.url.replace("://", f"://{TOKEN}@") + "/1"


def test_a_page_with_the_sdk_for_browsers_reports(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with serving_page(tmp_path, "sentry_page.mjs") as address, ingest_server() as ingest:
        page.goto(address)
        sent = page.evaluate("(dsn) => begin(dsn)", dsn(ingest))
        events = [json.loads(event) for event in accepted(ingest)]
    page.close()
    check(events, in_page=True)
    for made, event in zip(sent, events, strict=True):
        check_fields(made, event)


def test_a_page_of_react_with_its_boundary_reports(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with serving_page(tmp_path, "sentry_react.mjs") as address, ingest_server() as ingest:
        page.goto(address)
        page.evaluate("(dsn) => begin(dsn)", dsn(ingest))
        [event] = [json.loads(event) for event in accepted(ingest)]
        expect(page.locator("#root")).to_have_text("sorry")
    page.close()
    error = event["error"]
    assert (error["type"], error["message"]) == ("TypeError", "no price")
    assert error["stack"][0]["function"] == "Price"
    assert error["cause"]["type"] == "React ErrorBoundary TypeError"
    assert [frame["function"] for frame in error["cause"]["stack"]][:3] == ["Price", "main", "Shop"]
