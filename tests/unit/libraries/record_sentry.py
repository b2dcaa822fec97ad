"""Records the events of the installed SDKs of Sentry again: `python -m tests.unit.libraries.record_sentry`."""

import json
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.e2e.browser import launch
from tests.unit.libraries.sentry_sdks import MODULES, RECORDED, application, serving_page
from tests.unit.libraries.test_javascript import node
from tests.unit.svc.ingest import ingest_server

DSN = "https://svc_pk_x@errors.example/1"
DROPPED = {"event_id", "server_name", "sdk", "modules", "context_line", "pre_context", "post_context"}


def plain(value: Any, names: dict[str, str]) -> Any:
    """Without what is no part of an event here, and what depends on the machine."""
    if isinstance(value, dict):
        return {
            key: {"trace": plain(inner["trace"], names)} if key == "contexts" else plain(inner, names)
            for key, inner in value.items()
            if key not in DROPPED
        }
    if isinstance(value, list):
        return [plain(inner, names) for inner in value]
    for found, name in names.items() if isinstance(value, str) else ():
        value = value.replace(found, name)
    return value


def in_node(folder: Path) -> Any:
    with ingest_server() as site:
        recorded = folder / "events.json"
        node("sentry_program.mjs", cwd=application(folder), DSN=DSN, SITE=site.url, RECORD=str(recorded))
        return plain(
            json.loads(recorded.read_bytes()),
            {
                site.url: "http://shop.example",
                str(folder): "/app",
                str(MODULES.resolve()): "/app/node_modules",
            },
        )


def in_page(folder: Path) -> Any:
    with sync_playwright() as playwright, serving_page(folder, "sentry_page.mjs") as address:
        page = launch(playwright).new_page()
        page.goto(address)
        events = page.evaluate("(dsn) => begin(dsn, true)", DSN)
        return plain(events, {address: "http://shop.example"})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        events = {"node": in_node(Path(one)), "page": in_page(Path(other))}
    lines = {sdk: ",\n".join(map(json.dumps, made)) for sdk, made in events.items()}
    text = ",\n".join(f'"{sdk}": [\n{made}\n]' for sdk, made in lines.items())
    RECORDED.write_text(f"{{{text}}}\n", encoding="utf-8")
