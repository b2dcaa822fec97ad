"""Whole programs in separate processes: how their uncaught errors arrive, and that they end as without us."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest, Reply

ROOT = Path(__file__).parents[3]


def run(
    ingest: Ingest, tmp_path: Path, body: str, *, options: str = "", url: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script that initialises the library towards the server and goes on with `body`."""
    begin = f"import svc\nsvc.init(release='shop@1+1', {options})\n"
    script = tmp_path / "program.py"
    script.write_text(begin + textwrap.dedent(body))
    env = {
        "PYTHONPATH": str(ROOT),
        "SVC_TOKEN": TOKEN,
        "SVC_INGEST_URL": url or ingest.url,
        "PATH": "/usr/bin:/bin",
    }
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def only(ingest: Ingest) -> dict[str, Any]:
    assert len(ingest.events) == 1, [event["error"]["message"] for event in ingest.events]
    return ingest.events[0]


def places(event: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(frame["function"], frame["file"], frame["inApp"]) for frame in event["error"]["stack"]]


def test_crash_of_a_script_arrives_and_is_printed_as_before(ingest: Ingest, tmp_path: Path) -> None:
    done = run(
        ingest,
        tmp_path,
        """
        def pay():
            return 1 / 0

        pay()
        """,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    event = only(ingest)
    assert (event["error"]["type"], event["error"]["message"]) == ("ZeroDivisionError", "division by zero")
    assert places(event) == [("pay", "program.py", True), ("<module>", "program.py", True)]
    assert event["error"]["stack"][0]["preContext"][-1] == "def pay():"


def test_error_of_a_thread_arrives(ingest: Ingest, tmp_path: Path) -> None:
    done = run(
        ingest,
        tmp_path,
        """
        import threading

        def work():
            raise ValueError("in a thread")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    )
    assert done.returncode == 0
    assert "Exception in thread" in done.stderr
    event = only(ingest)
    assert event["error"]["message"] == "in a thread"
    assert places(event)[0] == ("work", "program.py", True)
    assert {(file, in_app) for _, file, in_app in places(event)[1:]} == {("threading.py", False)}


def test_errors_of_tasks_arrive(ingest: Ingest, tmp_path: Path) -> None:
    done = run(
        ingest,
        tmp_path,
        """
        import asyncio

        async def forgotten():
            raise ValueError("in a task without an awaiter")

        async def main():
            task = asyncio.create_task(forgotten())
            await asyncio.sleep(0)
            del task
            await asyncio.sleep(0)
            async with asyncio.TaskGroup() as group:
                group.create_task(awaited())

        async def awaited():
            raise KeyError("in a task of a group")

        asyncio.run(main())
        """,
    )
    assert done.returncode == 1
    first, second = ingest.events
    assert first["error"]["message"] == "in a task without an awaiter"
    assert places(first) == [("forgotten", "program.py", True)]
    assert second["error"]["type"] == "ExceptionGroup"
    assert second["error"]["cause"]["type"] == "KeyError"
    assert second["error"]["cause"]["stack"][0]["function"] == "awaited"
    assert ("main", "program.py", True) in places(second)


def test_forked_process_sends_its_own_events_and_no_others(ingest: Ingest, tmp_path: Path) -> None:
    done = run(
        ingest,
        tmp_path,
        """
        import os

        svc.set_tag("from", "parent")
        svc.capture_exception(ValueError("parent before the fork"))
        assert svc.flush(10)
        svc.capture_exception(ValueError("parent's own"))
        child = os.fork()
        if child == 0:
            svc.set_tag("from", "child")
            raise ValueError("child")
        assert os.waitpid(child, 0)[1] != 0
        svc.capture_exception(ValueError("parent after the fork"))
        """,
        options="flush_interval=0.2",
    )
    assert done.returncode == 0, done.stderr
    messages = sorted((event["error"]["message"], event["tags"]["from"]) for event in ingest.events)
    assert messages == [
        ("child", "child"),
        ("parent after the fork", "parent"),
        ("parent before the fork", "parent"),
        ("parent's own", "parent"),
    ]
    assert len({event["id"] for event in ingest.events}) == 4


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("where", ["program", "worker"])
def test_error_of_a_process_of_multiprocessing_arrives(
    ingest: Ingest, tmp_path: Path, method: str, where: str
) -> None:
    done = run(
        ingest,
        tmp_path,
        f"""
        def work():
            {"svc.init(release='shop@1+1', flush_interval=60)" if where == "worker" else ""}
            try:
                raise ValueError("in a worker")
            except ValueError:
                svc.capture_exception()

        if __name__ == "__main__":
            import multiprocessing
            context = multiprocessing.get_context({method!r})
            process = context.Process(target=work)
            process.start()
            process.join()
        """,
        options="flush_interval=60",
    )
    assert done.returncode == 0, done.stderr
    assert only(ingest)["error"]["stack"][0]["function"] == "work"


def test_error_that_cannot_be_raised_anywhere_arrives(ingest: Ingest, tmp_path: Path) -> None:
    done = run(
        ingest,
        tmp_path,
        """
        class Bad:
            def __del__(self):
                raise ValueError("in a finaliser")

        Bad()
        """,
    )
    assert done.returncode == 0
    assert "Exception ignored in" in done.stderr
    assert places(only(ingest)) == [("Bad.__del__", "program.py", True)]


def test_error_in_an_exit_handler_is_captured_by_hand_still(ingest: Ingest, tmp_path: Path) -> None:
    run(
        ingest,
        tmp_path,
        """
        import atexit

        @atexit.register
        def last():
            svc.capture_exception(ValueError("on the way out"))
        """,
    )
    assert only(ingest)["error"]["message"] == "on the way out"


def test_killed_program_leaves_its_events_to_the_next_run(ingest: Ingest, tmp_path: Path) -> None:
    queue = f"queue_dir={str(tmp_path / 'queue')!r}"
    killed = """
        import os, signal
        svc.capture_exception(ValueError("the last word"))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    done = run(ingest, tmp_path, killed, options=queue + ", flush_interval=60")
    assert done.returncode == -9
    assert ingest.events == []
    (stored,) = (tmp_path / "queue").glob("*.json")
    run(ingest, tmp_path, "import time\nwhile not svc.stats().get('sent'): time.sleep(0.01)\n", options=queue)
    assert only(ingest)["id"] == stored.stem
    assert list((tmp_path / "queue").iterdir()) == []


@pytest.mark.parametrize("failure", ["refused connection", "nothing but errors", "silence"])
def test_exit_is_not_held_up_longer_than_set(ingest: Ingest, tmp_path: Path, failure: str) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = {
            "refused connection": "http://127.0.0.1:1",
            "nothing but errors": ingest.url,
            "silence": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }[failure]
        ingest.answers.extend([Reply(500)] * 50)
        done = run(
            ingest,
            tmp_path,
            """
            import atexit, time
            began = time.monotonic()
            for n in range(500):
                svc.capture_exception(ValueError(str(n)))
            assert time.monotonic() - began < 60
            from svc.reporting import _at_exit
            began = time.monotonic()
            _at_exit()
            print(time.monotonic() - began)
            """,
            options="shutdown_timeout=0.3, request_timeout=120",
            url=url,
        )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 60


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        (None, "gave no answer of an ingest address (ConnectionRefusedError"),
        (Reply(303, headers={"Location": "/sign-in"}), "gave no answer of an ingest address (status 303)"),
        (Reply(405, {"error": "methodNotAllowed"}), "is no ingest address (status 405)"),
        (Reply(401, {"error": "unauthorized"}), "does not know the token"),
        (Reply(503, {"error": "internal"}), "answered with status 503"),
    ],
)
def test_crashing_script_says_in_one_line_why_its_errors_are_not_reported(
    ingest: Ingest, tmp_path: Path, reply: Reply | None, hint: str
) -> None:
    ingest.answers.extend([reply] * 4 if reply else [])
    url = ingest.url if reply else "http://127.0.0.1:1"
    # Repetitions follow without a wait, so that the last answer is known however slow the machine is.
    body = """
        import svc.answers
        svc.answers.FIRST_WAIT = 0
        svc.capture_exception(ValueError())
        1 / 0
    """
    done = run(ingest, tmp_path, body, url=url, options="shutdown_timeout=30")
    own = [line for line in done.stderr.splitlines() if line.startswith("svc: ")]
    assert len(own) == 1, done.stderr
    assert f"{url} {hint}" in own[0]


def test_program_with_captured_logs_keeps_its_own(ingest: Ingest, tmp_path: Path) -> None:
    body = """
        import logging
        shop = logging.getLogger("shop")
        shop.warning("before any configuration")
        logging.basicConfig(format="configured: %(message)s")
        shop.warning("after it")
        logging.getLogger("apart").propagate = False
        logging.getLogger("apart").error("a logger that does not propagate")
        svc.capture_exception(ValueError())
    """
    plain = run(ingest, tmp_path, body, options="capture={'logs': False}")
    by_default = run(ingest, tmp_path, body, options="capture={}")
    captured = run(ingest, tmp_path, body, options="capture={'logs': True}")
    assert "configured: after it" in plain.stderr
    assert captured.stderr == by_default.stderr == plain.stderr
    none, errors, all_records = [
        [crumb["data"]["message"] for crumb in event.get("breadcrumbs", [])] for event in ingest.events
    ]
    assert none == []
    assert errors == ["a logger that does not propagate"]
    assert all_records == ["before any configuration", "after it", "a logger that does not propagate"]


def test_program_that_ends_immediately_has_nothing_to_wait_for(ingest: Ingest, tmp_path: Path) -> None:
    """`run` would not wait as long as this program may."""
    done = run(ingest, tmp_path, "", options="shutdown_timeout=600")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
