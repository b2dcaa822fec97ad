"""The options of `init`, in both spellings, and invalid ones."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import svc
from schemas.event import RELEASE_PATTERN
from svc.client import current
from svc.options import DEFAULT_INGEST_URL, Capture, Options, release_parts, resolve
from tests.unit.svc.ingest import Ingest

RELEASE = re.compile(RELEASE_PATTERN)


@pytest.mark.parametrize(
    ("spelled", "option", "value"),
    [
        ("ingestUrl", "ingest_url", "http://127.0.0.1:9000"),
        ("trackAutoBreadcrumb", "track_auto_breadcrumb", False),
        ("inAppInclude", "in_app_include", ["shop"]),
        ("queueDir", "queue_dir", "/tmp/q"),
        ("flushInterval", "flush_interval", 3.0),
        ("shutdownTimeout", "shutdown_timeout", 3.0),
    ],
)
def test_both_spellings_are_the_same_option(spelled: str, option: str, value: Any) -> None:
    by_camel, _ = resolve({spelled: value, "token": "t", "release": "a@1+1"}, {})
    by_snake, problems = resolve({option: value, "token": "t", "release": "a@1+1"}, {})
    assert by_camel == by_snake
    assert getattr(by_camel, option) == value
    assert problems == []


def test_token_and_ingest_url_come_from_the_environment(tmp_path: Path) -> None:
    options, _ = resolve({}, {"SVC_TOKEN": "svc_pk_env", "SVC_INGEST_URL": "https://in.example/base/"})
    assert (options.token, options.ingest_url) == ("svc_pk_env", "https://in.example/base")
    given_ones, _ = resolve(
        {"token": "svc_pk_own", "ingestUrl": "http://own"}, {"SVC_TOKEN": "e", "SVC_INGEST_URL": "http://e"}
    )
    assert (given_ones.token, given_ones.ingest_url) == ("svc_pk_own", "http://own")
    file = tmp_path / "token"
    file.write_text("svc_pk_file\n")
    from_file, _ = resolve({}, {"SVC_TOKEN_FILE": str(file)})
    assert (from_file.token, from_file.ingest_url) == ("svc_pk_file", DEFAULT_INGEST_URL)
    missing, problems = resolve({}, {"SVC_TOKEN_FILE": str(tmp_path / "none")})
    assert missing.token is None
    assert "SVC_TOKEN_FILE cannot be read" in problems


def test_capture_flags_are_independent() -> None:
    options, problems = resolve(
        {"capture": {"network": True, "sessions": True}, "token": "t", "release": "a@1+1"}, {}
    )
    assert options.capture == Capture(errors=True, network=True, sessions=True, logs=None)
    assert problems == []
    for name in ("errors", "logs", "requests", "handled", "thread"):
        assert resolve({"capture": {name: False}}, {})[0].capture == replace(Capture(), **{name: False})
    events, problems = resolve({"capture": {"logs": "events"}, "token": "t", "release": "a@1+1"}, {})
    assert (events.capture.logs, problems) == ("events", [])
    misspelt, problems = resolve({"capture": {"logs": "event"}, "token": "t", "release": "a@1+1"}, {})
    assert (misspelt.capture.logs, problems) == (None, ["option capture: logs cannot be 'event'"])
    assert "option capture has no 'mouse'" in resolve({"capture": {"mouse": True}}, {})[1]


@pytest.mark.parametrize(
    "url",
    [
        "http://svc_pk_token@127.0.0.1:8080",
        "ftp://h",
        "h:8080",
        "http://",
        "http://h:x",
        "http://h/?token=x",
        "http://h/ x",
    ],
)
def test_url_that_is_more_or_less_than_an_address_switches_sending_off(url: str) -> None:
    options, problems = resolve({"token": "svc_pk_x", "ingest_url": url}, {})
    assert options.token is None
    assert any("nothing will be reported" in problem for problem in problems)


@pytest.mark.parametrize("token", ["a b", "x\r\nInjected: 1", "käse"])
def test_token_that_no_header_can_carry_switches_sending_off(token: str) -> None:
    assert resolve({"token": token}, {})[0].token is None


def test_token_does_not_show_in_the_options_repr() -> None:
    assert "hidden" not in repr(Options(token="svc_pk_hidden"))


def test_without_a_token_the_scope_works_and_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    svc.init(release="shop@1+1")
    svc.init(release="shop@1+1")
    svc.add_breadcrumb({"message": "m"})
    assert svc.capture_exception(ValueError()) is None
    assert len(svc.get_breadcrumbs()) == 1
    assert len([r for r in caplog.records if "no token" in r.getMessage()]) == 1


@pytest.mark.parametrize(
    ("given_release", "used"),
    [
        ("shop@1.4.2+318", "shop@1.4.2+318"),
        ("shop@1.4.2", "shop@1.4.2+0"),
        ("my shop@1.4.2+3 beta", "my shop@1.4.2+3 beta"),
        ("my shop@1.4.2 beta", "my-shop@1.4.2-beta+0"),
        ("@scope/app@1.0.0+7", "@scope/app@1.0.0+7"),
        ("@scope/app@1.0.0", "@scope/app@1.0.0+0"),
    ],
)
def test_release_is_completed(given_release: str, used: str) -> None:
    assert resolve({"release": given_release}, {})[0].release == used


def test_missing_release_is_the_programs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/night job.py"])
    options, problems = resolve({"token": "t"}, {})
    assert options.release == "night-job@0.0.0+0"
    assert len([problem for problem in problems if "release" in problem]) == 1
    monkeypatch.setattr(sys, "argv", [""])
    assert resolve({"release": "1.4.2"}, {})[0].release == "app@1.4.2+0"


@given(st.one_of(st.text(), st.integers(), st.none(), st.binary()))
def test_any_release_becomes_one_that_the_server_takes(release: object) -> None:
    used = resolve({"release": release}, {})[0].release
    assert RELEASE.match(used)
    assert all(release_parts(used))


@given(st.dictionaries(st.one_of(st.text(), st.sampled_from(sorted(Options.__dataclass_fields__))), st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text()),
    st.dictionaries(st.text(), st.text()),
)))  # fmt: skip
def test_no_value_of_any_option_raises(options: dict[str, Any]) -> None:
    resolved, _ = resolve(options, {})
    assert isinstance(resolved, Options)


def test_unknown_option_is_logged_and_ignored(
    start: Callable[..., Ingest], caplog: pytest.LogCaptureFixture
) -> None:
    start(sampleRate=0.5)
    assert current() is not None
    assert any("sampleRate" in record.getMessage() for record in caplog.records)


def test_library_imports_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; before = set(sys.modules); import svc; "
        "print(' '.join(sorted({m.partition('.')[0] for m in set(sys.modules) - before} - sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["svc"]
