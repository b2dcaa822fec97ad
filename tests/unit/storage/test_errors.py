import re
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from storage.clickhouse_diagnosis import REASONS, FailureKind, diagnose
from storage.client import parse_url
from storage.exactly_once.consistent_read import NoConsistentRead

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (252, "tooManyParts"),
        (242, "readOnly"),
        (243, "disk"),
        (241, "memory"),
        (60, "schema"),
        (9999, "error"),
    ],
)
def test_error_of_the_server_is_waited_for_with_a_reason(code: int, reason: str) -> None:
    found = diagnose(DatabaseError("Code: x", code=code))
    assert (found.kind, found.reason) == (FailureKind.WAIT, reason)
    assert found.sentence


def test_a_server_that_is_unreachable_is_waited_for() -> None:
    assert diagnose(OperationalError("connection refused")).reason == "unavailable"
    assert diagnose(NoConsistentRead("inserts overlapped")).reason == "noConsistentRead"


def test_missing_right_on_a_wide_table_is_named_with_the_table() -> None:
    columns = ", ".join(f"column_{number}" for number in range(50))
    text = f"it's necessary to have the grant INSERT({columns}) ON svc.issues. (ACCESS_DENIED)"
    assert "the grant INSERT ON svc.issues." in diagnose(DatabaseError(text, code=497)).sentence


def test_values_that_are_not_taken_are_a_refusal() -> None:
    assert diagnose(DatabaseError("constraint", code=469)).kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (62, "Syntax error"),
        (62, "Max query size exceeded"),
        (168, "AST is too big"),
        (43, "Illegal type of argument"),
        (1000, "Poco::Exception. Code: 1000, HTML Form Exception: Field value too long"),
        (None, "HTTP driver received HTTP status 400, server response: HTTP request URI invalid or too long"),
    ],
)
def test_a_statement_that_can_never_run_is_not_waited_for(code: int | None, text: str) -> None:
    found = diagnose(DatabaseError(text, code=code))
    assert (found.kind, found.reason) == (FailureKind.WRONG, "wrong")
    assert text in found.sentence


def test_documented_reasons_are_those_of_the_code() -> None:
    page = (ROOT / "docs/operate/troubleshooting.md").read_text(encoding="utf-8")
    section = page.partition("## ClickHouse refuses inserts")[2].partition("\n## ")[0]
    documented = {
        word
        for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    }
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "storage").rglob("*.py"))
    assert {word for word in documented if f'"{word}"' not in source} == set()
    assert {reason for reason, _ in REASONS.values()} <= documented


@pytest.mark.parametrize(("host", "expected"), [("[::1]", "[::1]:8123"), ("ch1", "ch1:8123")])
def test_address_of_a_server_keeps_the_brackets_of_ipv6(host: str, expected: str) -> None:
    assert parse_url(f"http://svc:x@{host}/svc").host_port == expected
