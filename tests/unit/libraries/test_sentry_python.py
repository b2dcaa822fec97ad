"""The transport for sentry-sdk: the events of a real application, compared with those of `svc`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.libraries.sentry_fields import check_fields
from tests.unit.libraries.test_javascript import accepted
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "sentry_program.py"
LEFT_OUT = ("extra", "email or IP address of the user", "vars", "transaction", "sessions")
UNKNOWN_TO_SENTRY = {"column"}


def plain_names(error: dict[str, Any]) -> dict[str, Any]:
    """An error of `svc` with what sentry-sdk knows of it."""
    stack = [
        {key: value for key, value in frame.items() if key not in UNKNOWN_TO_SENTRY}
        | {"function": frame["function"].rpartition(".")[2]}
        for frame in error["stack"]
    ]
    cause = {"cause": plain_names(error["cause"])} if "cause" in error else {}
    return {**error, "stack": stack, **cause}


def test_an_application_with_sentry_sdk_reports(ingest: Ingest, tmp_path: Path) -> None:
    dsn = ingest.url.replace("://", f"://{TOKEN}@") + "/1"
    recorded = tmp_path / "sent.jsonl"
    variables = {"DSN": dsn, "SITE": ingest.url, "SVC_TOKEN": TOKEN, "SVC_INGEST_URL": ingest.url}
    variables["RECORD"] = str(recorded)
    done = subprocess.run(
        [sys.executable, PROGRAM],
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    warnings = [line for line in done.stderr.splitlines() if line.startswith("svc: ")]
    left_out = [f"svc: left out, as events have no place for it: {what}" for what in LEFT_OUT]
    assert sorted(warnings) == sorted(left_out), done.stderr
    events = [json.loads(event) for event in accepted(ingest)]
    ours = {event["error"]["type"]: event for event in events if event["tags"].get("by") == "svc"}
    from_sentry = [event for event in events if "by" not in event["tags"]]
    for made, event in zip(map(json.loads, recorded.read_bytes().splitlines()), from_sentry, strict=True):
        check_fields(made, event)
    sent = {event["error"]["type"]: event for event in from_sentry}
    assert (len(ours), len(from_sentry)) == (2, 11)
    assert sent.keys() == {
        *("LookupError", "ExceptionGroup", "pay", "Message", "RuntimeError", "OSError", "AssertionError"),
        *("KeyError", "IndexError", "RecursionError", "ValueError"),
    }
    assert sent["RuntimeError"]["tags"]["url"] == "http://shop.example/orders/8"
    for event in sent.values():
        for same in ("release", "environment", "app", "device", "platform"):
            assert event[same] == ours["LookupError"][same]
    event, group = sent["LookupError"], sent["ExceptionGroup"]["error"]
    assert [frame["function"] for frame in event["error"]["stack"]] == ["charge", "pay", "<module>"]
    assert event["error"] == plain_names(ours["LookupError"]["error"])
    assert group["message"] == "all\n- TypeError: first\n- ExceptionGroup: others"
    assert group["cause"] == ours["ExceptionGroup"]["error"]["cause"]
    crumbs = [(crumb["type"], crumb["data"].get("category")) for crumb in sent["Message"]["breadcrumbs"]]
    assert crumbs == [("log", "stock"), ("net", None), ("custom", "cart"), ("log", "pay")]
