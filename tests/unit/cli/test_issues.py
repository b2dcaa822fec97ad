"""`svc issues`: arguments that are refused without a server."""

import getpass
import io

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.console import Console

from cli.__main__ import svc
from cli.console import current_user
from cli.issues import print_lines
from schemas.read_api import IssuePage
from tests.unit.dashboard.test_change_notice import ISSUE as ROW

ISSUE = "00000000000000a1"
NOWHERE = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1", "SVC_CLICKHOUSE_URL": "http://127.0.0.1:1/svc"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["comment", ISSUE, ""], "text: must not be empty"),
        (["comment", ISSUE, "x" * 10_001], "text: at most 10000 characters"),
        (["resolve", ISSUE, "--in", ""], "resolvedIn: must not be empty"),
        (["resolve", ISSUE, "--in", "", "--next"], "use either --in or --next"),
        (["assign", ISSUE, "x" * 201], "assignee: at most 200 characters"),
        (["ignore", ISSUE, "--events", "1000000001"], "ignoreUntil.events: at most 1000000000"),
    ],
)
def test_a_change_that_no_processor_would_take_is_refused_without_waiting(
    arguments: list[str], message: str
) -> None:
    answer = CliRunner().invoke(svc, ["issues", *arguments], env=NOWHERE)
    assert answer.exit_code == 2
    assert message in answer.output


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 4711"), OSError("No username set")])
def test_a_user_without_a_name_changes_issues_as_svc(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_user() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", no_user)
    assert current_user() == "svc"


def test_unavailable_clickhouse_is_reported_with_its_address() -> None:
    own = NOWHERE | {"SVC_CLICKHOUSE_READER_URL": "http://127.0.0.1:2/svc"}
    for env, port, variable in ((NOWHERE, 1, "SVC_CLICKHOUSE_URL"), (own, 2, "SVC_CLICKHOUSE_READER_URL")):
        answer = CliRunner().invoke(svc, ["issues", "show", ISSUE], env=env)
        assert answer.exit_code == 1
        assert f"nothing answers at 127.0.0.1:{port}" in answer.output
        assert f"correct {variable}\n" in answer.output


@pytest.mark.parametrize(("width", "lines"), [(80, 2), (160, 1)])
def test_a_title_has_room_at_eighty_columns(width: int, lines: int) -> None:
    out = io.StringIO()
    message = "payment was not taken [red]: the provider did not answer"
    print_lines([replace(ROW, error_type="CheckoutError", message=message)], Console(file=out, width=width))
    text = out.getvalue()
    assert f"CheckoutError: {message}" in text
    assert max(map(len, text.splitlines())) <= width
    assert sum(ROW.id in line or message in line for line in text.splitlines()) == lines


@pytest.mark.parametrize(
    ("cursor", "notice"), [(None, ""), ("next", "svc: these are the first 1, and there are more")]
)
def test_a_list_that_is_cut_says_so(cursor: str | None, notice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.issues._run", lambda *_: (IssuePage([ROW], cursor), []))
    answer = CliRunner().invoke(svc, ["issues", "list", "shop", "--limit", "1", "--json"], env=NOWHERE)
    assert answer.exit_code == 0
    assert answer.stderr.strip().startswith(notice)
    assert bool(answer.stderr) == bool(notice)
    assert ROW.id in answer.stdout
