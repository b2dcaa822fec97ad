"""Reports of the applications in `docs/examples`."""

import asyncio
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.examples import COMMANDS, ROOT, WEB, shop, started, status
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest


def reporting_to(ingest: Ingest) -> dict[str, str]:
    return {"SVC_TOKEN": TOKEN, "SVC_INGEST_URL": ingest.url}


def only_event(ingest: Ingest) -> dict[str, Any]:
    (event,) = asyncio.run(eventually(lambda: ingest.events, 30))
    return event


@pytest.mark.parametrize("name", WEB)
def test_web_application_reports_the_request_that_crashed(ingest: Ingest, tmp_path: Path, name: str) -> None:
    with shop(name, tmp_path, reporting_to(ingest)) as address:
        assert asyncio.run(eventually(lambda: status(f"{address}/orders/6"), 30)) == 200
        assert status(f"{address}/orders/7?page=2&token=abc") == 500
        event = only_event(ingest)
    assert event["error"]["type"] == "LookupError"
    event["tags"].pop("thread", None)  # some of these servers answer in threads
    assert event["tags"] == {
        "order": "7",
        "handled": "no",
        "method": "GET",
        "route": WEB[name][0],
        "url": f"{address}/orders/7?page=2&token=***",
    }


def test_worker_reports_the_task_that_failed(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data_in").mkdir()
    (tmp_path / "data_out").symlink_to("data_in")  # one process writes, the other reads
    alone = ("--pool", "solo", "--without-gossip", "--without-mingle")
    broker = reporting_to(ingest) | {"BROKER": "filesystem://"}
    with started("celery_app", tmp_path, broker, *alone) as environment:
        call = shlex.split("celery --app celery_app call shop.pay --args [7]")
        subprocess.run(call, env=environment, cwd=tmp_path, check=True, capture_output=True)
        event = only_event(ingest)
    assert event["error"]["type"] == "TimeoutError"
    assert event["tags"] == {"order": "7", "handled": "no", "task": "shop.pay"}


@pytest.mark.parametrize("name", COMMANDS)
def test_first_application_names_the_command(name: str) -> None:
    page = (ROOT / "docs" / "start" / "first-application.md").read_text(encoding="utf-8")
    assert f"`{COMMANDS[name]}`" in page
    assert f"examples/{name}.py" in page
