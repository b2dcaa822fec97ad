import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from storage.client import ClickHouseError
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.execute import refusal


@pytest.mark.parametrize("code", [158, 241, 307, 396])
def test_a_limit_that_was_reached_advises_to_narrow_the_query(code: int) -> None:
    refused = refusal(DatabaseError("Query memory limit exceeded", code=code))
    assert isinstance(refused, QueryTooExpensive)
    assert "narrow the time range or the query" in str(refused)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OperationalError("Connection refused"), "doesn't answer"),
        (DatabaseError("NETWORK_ERROR", code=210), "doesn't answer"),
        (DatabaseError("too many simultaneous queries", code=202), "busy"),
        (DatabaseError("Timeout exceeded: elapsed 10.1 seconds", code=159), "took too long"),
        (DatabaseError("Estimated query execution time is too long", code=160), "took too long"),
        (DatabaseError("(total) memory limit exceeded", code=241), "busy"),
        (DatabaseError("User memory limit exceeded", code=241), "busy"),
        (DatabaseError("Memory limit exceeded for the server", code=241), "busy"),
        (DatabaseError("CPU is overloaded", code=745), "busy"),
        (DatabaseError("Not enough privileges", code=497), "lacks a right"),
        (DatabaseError("Authentication failed", code=516), "refuses the reading user"),
        (DatabaseError("Setting max_rows_to_read shouldn't be greater than 5", code=452), "settings profile"),
    ],
)
@pytest.mark.holds("contract 4")
def test_a_server_that_is_unreachable_or_busy_may_answer_later(error: ClickHouseError, why: str) -> None:
    refused = refusal(error)
    assert isinstance(refused, StorageUnavailable)
    assert why in str(refused)


def test_a_mistake_of_ours_is_not_hidden() -> None:
    error = DatabaseError("Unknown identifier", code=47)
    assert refusal(error) is error
