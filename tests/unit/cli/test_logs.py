"""Every line of a log is one JSON object, also from warnings and uncaught errors."""

import json
import os
import subprocess
import sys

import pytest

HEAD = "import logging, sys, threading, warnings; from cli.logs import configure; configure('info'); "


def lines_of(program: str, **environ: str) -> list[dict[str, str]]:
    ended = subprocess.run(
        [sys.executable, "-P", "-W", "default", "-c", HEAD + program],
        capture_output=True,
        check=False,
        timeout=60,
        env=os.environ | environ,
    )
    assert ended.stdout == b""
    return [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.mark.parametrize(
    ("program", "level", "message"),
    [
        ("warnings.warn('old')", "warning", "UserWarning: old"),
        ("raise ValueError('no')", "critical", "uncaught: ValueError: no"),
        ("threading.Thread(target=lambda: 1 / 0, name='t').start()", "error", "uncaught in t: ZeroDivision"),
        ("type('A', (), {'__del__': lambda _: 1 / 0})()", "error", "ZeroDivisionError: division by zero"),
        ("exec('async def f(): pass'); f()", "warning", "never awaited"),
    ],
)
def test_warnings_and_uncaught_errors_are_lines_of_the_log(program: str, level: str, message: str) -> None:
    [line] = lines_of(program)
    assert line["level"] == level
    assert message in line["message"]


def test_event_key_of_a_call_is_a_field_of_its_line() -> None:
    [line] = lines_of("logging.getLogger('a').warning('late', extra={'event': 'batch_delayed'})")
    assert (line["message"], line["event"]) == ("late", "batch_delayed")


def test_a_process_says_which_variables_it_passed_over() -> None:
    [line] = lines_of("", SVC_DASHBOARD_PORT="tcp://10.0.0.1:80")
    assert line["level"] == "warning"
    assert "SVC_DASHBOARD_PORT" in line["message"]
