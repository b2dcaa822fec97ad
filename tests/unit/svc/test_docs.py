"""The pages about the library are true: their programs run, their lists are whole, their event is a real one."""

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import fields
from pathlib import Path

import pytest

import svc
from local.ports import free_port
from svc.options import Options
from tests.eventually import eventually
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.example_event import captured
from tests.unit.svc.ingest import Ingest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "start" / "first-application.md").read_text(encoding="utf-8")
HOW_TO = (ROOT / "docs" / "develop" / "report-errors.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", HOW_TO, re.DOTALL))


def environment(ingest: Ingest, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SVC_TOKEN": TOKEN,
        "SVC_INGEST_URL": ingest.url,
        **more,
    }


def run(
    name: str, ingest: Ingest, folder: Path, given: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(PROGRAMS[name])
    return subprocess.run(
        [sys.executable, name],
        env=environment(ingest, **env), cwd=folder, input=given, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


def test_script_runs(ingest: Ingest, tmp_path: Path) -> None:
    done = run("script.py", ingest, tmp_path)
    assert done.stderr == ""
    (event,) = ingest.events
    assert event["error"]["message"] == "could not convert string to float: 'two'"
    assert event["tags"] == {"rows": "3", "handled": "yes"}
    assert [crumb["data"]["row"] for crumb in event["breadcrumbs"]] == ["1.5", "two"]


def test_first_application_reports_both_errors(ingest: Ingest, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n# first\.py\n(.*?)```", START, re.DOTALL)
    (tmp_path / "first.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "first.py"],
        env=environment(ingest), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "ValueError" in done.stderr
    assert [event["error"]["type"] for event in ingest.events] == ["ZeroDivisionError", "ValueError"]
    assert [event["tags"] for event in ingest.events] == [{"handled": "yes"}, {"handled": "no"}]


def says_hello(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as response:
            return bool(response.read() == b"hello\n")
    except urllib.error.URLError:
        return False


def test_web_service_runs(ingest: Ingest, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "web.py").write_text(PROGRAMS["web.py"])
    env = environment(ingest, PORT=str(port))
    with subprocess.Popen(
        [sys.executable, "web.py"], env=env, cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as server:
        try:
            asyncio.run(eventually(lambda: says_hello(f"http://127.0.0.1:{port}/")))
            with pytest.raises(urllib.error.HTTPError) as failed:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/orders")
            failed.value.close()
            asyncio.run(eventually(lambda: ingest.events))
        finally:
            server.terminate()
    (event,) = ingest.events
    assert event["error"]["type"] == "LookupError"
    url = f"http://127.0.0.1:{port}/orders"
    assert event["tags"] == {"method": "GET", "url": url, "handled": "no"}
    assert event["user"] == {"id": "nobody"}
    assert event["error"]["stack"][0]["function"] == "app"


def test_worker_runs(ingest: Ingest, tmp_path: Path) -> None:
    done = run("worker.py", ingest, tmp_path, QUEUE_DIR=str(tmp_path / "queue"))
    assert (done.stdout, done.stderr) == ("", "")
    (event,) = ingest.events
    assert event["error"]["type"] == "TimeoutError"
    assert event["tags"] == {"job": "3", "handled": "yes"}
    assert event["fingerprint"] == ["job failed"]
    assert set(event["user"]) == {"id", "linkHashes"}
    assert "owner@example.com" not in json.dumps(event)
    assert list((tmp_path / "queue").iterdir()) == []


def test_tool_that_has_events_runs(ingest: Ingest, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": str(n)}) + "\n" for n in range(120))
    assert run("send.py", ingest, tmp_path, lines).stdout == "True 100 []\nTrue 20 []\n"
    assert len(ingest.events) == 120


def test_documented_event_is_the_sent_one() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert json.loads(shown) == captured()


@pytest.mark.parametrize("name", sorted(name for name in svc.__all__ if not re.search("_|[a-z][A-Z]", name)))
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert f"`{name}" in PAGE


@pytest.mark.parametrize("name", sorted(name for name in svc.__all__ if "_" in name.strip("_")))
def test_every_function_is_on_the_page(name: str) -> None:
    assert f"`{name}(" in PAGE


@pytest.mark.parametrize("option", [option.name for option in fields(Options)])
def test_every_option_is_on_the_page(option: str) -> None:
    assert f"`{option}`" in PAGE
