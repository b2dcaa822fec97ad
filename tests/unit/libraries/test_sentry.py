"""The transports for Sentry's SDKs for JavaScript: what arrives of their events."""

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.libraries.sentry_fields import check_fields
from tests.unit.libraries.sentry_sdks import LIBRARY, RECORDED, application, check, needs_sdks
from tests.unit.libraries.test_javascript import accepted, needs_node, node
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest

LEFT_OUT = {
    "svc: left out, as events have no place for it: " + what
    for what in ("session", "span", "extra", "email or IP address of the user")
}
REPLAY = """
    import { readFileSync } from "node:fs";
    globalThis.addEventListener ??= () => {};
    if (SDK === "page") {
      Object.defineProperty(globalThis, "navigator", { value: { userAgent: "Firefox/140.0", language: "de" } });
    }
    const { svcTransport } = await import("svc-js/sentry-transport");
    const transport = svcTransport({ url: URL + "/api/1/envelope/?sentry_version=7&sentry_key=" + TOKEN });
    for (const event of JSON.parse(readFileSync(RECORDED, "utf8"))[SDK]) {
      await transport.send([{}, [[{ type: "event" }, event]]]);
    }
    await transport.send([{}, [[{ type: "session" }, {}], [{ type: "span" }, {}], [{ type: "client_report" }, {}]]]);
    await transport.send([{}, [[{ type: "span" }, {}]]]);
    if (!(await transport.flush())) throw new Error("not flushed");
"""


def dsn(ingest: Ingest) -> str:
    return ingest.url.replace("://", f"://{TOKEN}@") + "/1"


@needs_node
@pytest.mark.parametrize(
    ("sdk", "condition", "os"),
    [("node", "node", "other"), ("page", "browser", "web"), ("page", "react-native", "ios")],
)
def test_recorded_events_arrive(ingest: Ingest, tmp_path: Path, sdk: str, condition: str, os: str) -> None:
    stub = tmp_path / "node_modules" / "react-native"
    stub.mkdir(parents=True)
    (stub / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (stub / "index.js").write_text("""
        export const AppState = { addEventListener() {} };
        const constants = { reactNativeVersion: { major: 0, minor: 82, patch: 1 } };
        export const Platform = { OS: "ios", Version: "26.1", constants };
    """)
    shutil.copytree(LIBRARY, tmp_path / "node_modules" / "svc-js")
    given = {"SDK": sdk, "URL": ingest.url, "TOKEN": TOKEN, "RECORDED": str(RECORDED)}
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    (tmp_path / "program.mjs").write_text(constants + REPLAY)
    done = node(f"--conditions={condition}", "program.mjs", cwd=tmp_path)
    assert (done.returncode, {*done.stderr.splitlines()}) == (0, LEFT_OUT)
    assert len(done.stderr.splitlines()) == len(LEFT_OUT)
    events = [json.loads(event) for event in accepted(ingest)]
    check(events, in_page=sdk == "page")
    for sent, event in zip(json.loads(RECORDED.read_bytes())[sdk], events, strict=True):
        check_fields(sent, event)
    assert {event["device"]["os"] for event in events} == {os}


@needs_sdks
@pytest.mark.slow
def test_an_application_with_the_sdk_for_node_reports(ingest: Ingest, tmp_path: Path) -> None:
    done = node("sentry_program.mjs", cwd=application(tmp_path), DSN=dsn(ingest), SITE=ingest.url)
    assert {line for line in done.stderr.splitlines() if line.startswith("svc: ")} == LEFT_OUT
    check([json.loads(event) for event in accepted(ingest)], in_page=False)
