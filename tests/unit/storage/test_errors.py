import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from storage.diagnosis import FailureKind, diagnose
from storage.repair.consistent_read import NoConsistentRead


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


def test_values_that_are_not_taken_are_a_refusal() -> None:
    assert diagnose(DatabaseError("constraint", code=469)).kind is FailureKind.REFUSED
