"""The applications in `docs/examples`, each started by the command that its docstring names, in a process of its own."""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local.ports import free_port
from tests.eventually import eventually
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
SCRIPTS = str(Path(sys.executable).parent)
COMMANDS = {
    path.stem: re.findall("`(.+?)`", path.read_text(encoding="utf-8"))[0] for path in EXAMPLES.glob("*.py")
}


@contextmanager
def started(name: str, folder: Path, ingest: Ingest, *more: str, **env: str) -> Iterator[dict[str, str]]:
    """A copy of the example, running in the folder with more arguments; gives its environment."""
    shutil.copy(EXAMPLES / f"{name}.py", folder)
    (folder / "bin").mkdir()
    stand_in = folder / "bin" / "uvicorn"
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.unit.svc.asgi_server "$@"\n')
    stand_in.chmod(0o755)
    environment = {
        "PATH": os.pathsep.join([SCRIPTS, str(folder / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "SVC_TOKEN": TOKEN,
        "SVC_INGEST_URL": ingest.url,
        **env,
    }
    with (folder / "output").open("wb") as output:
        program = subprocess.Popen(
            [*shlex.split(COMMANDS[name]), *more],
            env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield environment
    finally:
        program.terminate()
        try:
            program.wait(30)
        finally:
            program.kill()


def status(url: str) -> int | None:
    """The status of the answer; None while nobody listens."""
    try:
        with urllib.request.urlopen(url) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return None


def only_event(ingest: Ingest) -> dict[str, Any]:
    (event,) = asyncio.run(eventually(lambda: ingest.events, 30))
    return event


@pytest.mark.parametrize(
    ("name", "route", "arguments"),
    [
        ("fastapi_app", "/orders/{number}", ["--port", "PORT"]),
        ("flask_app", "/orders/<int:number>", ["--port", "PORT"]),
        ("django_app", "/orders/<int:number>", ["--noreload", "PORT"]),
    ],
)
def test_web_application_reports_the_request_that_crashed(
    ingest: Ingest, tmp_path: Path, name: str, route: str, arguments: list[str]
) -> None:
    port = str(free_port())
    shop = f"http://127.0.0.1:{port}"
    with started(name, tmp_path, ingest, *(port if word == "PORT" else word for word in arguments)):
        assert asyncio.run(eventually(lambda: status(f"{shop}/orders/6"), 30)) == 200
        assert status(f"{shop}/orders/7?page=2&token=abc") == 500
        event = only_event(ingest)
    assert event["error"]["type"] == "LookupError"
    event["tags"].pop("thread", None)  # some of these servers answer in threads
    assert event["tags"] == {
        "order": "7",
        "handled": "no",
        "method": "GET",
        "route": route,
        "url": f"{shop}/orders/7?page=2&token=***",
    }


def test_worker_reports_the_task_that_failed(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data_in").mkdir()
    (tmp_path / "data_out").symlink_to("data_in")  # what one process writes, the other reads
    alone = ("--pool", "solo", "--without-gossip", "--without-mingle")
    with started("celery_app", tmp_path, ingest, *alone, BROKER="filesystem://") as environment:
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
