"""Rows of forty users in two projects, and the state of tables before and after an erasure."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from schemas.chunks import Grouping
from schemas.ids import user_hash
from storage.client import Client, scalar
from storage.maintain.erase.erase_user import UserReport, erase_user
from storage.shards import alone
from storage.tables.event_columns import EventColumns
from storage.tables.rollups import ROLLUPS
from tests.integration.storage.grouped import chunk_event

USER = "user-7"
PROJECT = 8
ROWS = 200


def block(size: int = ROWS, **changes: Any) -> pa.Table:
    """Events of forty users in two projects, each with a tag that no other has; odd users are of project 8."""
    columns = EventColumns()
    for number in range(size):
        tags = {"tier": ("free", "pro")[number % 2], "account": f"account-{number % 40}"}
        event = chunk_event(number, **{"tags": tags, **changes})
        columns.add_row(event, Grouping(number % 7, "v1", "frames", ()), 90, 30)
    return columns.table()


def erase(
    client: Client,
    settle: Callable[[], None] = lambda: None,
    user: str = USER,
    say: Callable[[str], None] = lambda _: None,
) -> UserReport:
    return erase_user(alone(client), PROJECT, user, "tester", settle, lambda _, __: None, say)


def answer(client: Client, sql: str) -> list[Any]:
    """The sorted rows of a query."""
    found: list[Any] = list(client.query(sql).result_rows)
    return sorted(found)


def recounted(client: Client) -> dict[str, tuple[object, object]]:
    """The sums of each rollup and those of `events`: equal if all is well, down to the users' states."""
    found: dict[str, tuple[object, object]] = {}
    for rollup in ROLLUPS:
        keys = ", ".join(f"{sql} AS {name}" for name, sql in rollup.keys)
        users = "users" in rollup.states
        there = (
            f"SELECT {rollup.names}, sum(n){', uniqCombinedMerge(12)(users)' * users} FROM {rollup.table}"
            f" GROUP BY {rollup.names}"
        )
        tags = " ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v" if rollup.tags else ""
        count = ", uniqCombinedIf(12)(user_hash, user_hash != 0)" * users
        here = f"SELECT {keys}, count(){count} FROM (SELECT * FROM events){tags} GROUP BY {rollup.names}"
        found[rollup.table] = (answer(client, there), answer(client, here))
    return found


def exact(client: Client) -> None:
    for table, (there, here) in recounted(client).items():
        assert there == here, table


def others(client: Client) -> list[Any]:
    """Every row of everybody else, as one sum a table."""
    wheres = f"project_id != {PROJECT} OR user_id != '{USER}'"
    events = client.query(f"SELECT count(), sum(cityHash64(*)) FROM events WHERE {wheres}").result_rows
    payloads = client.query(
        "SELECT count(), sum(cityHash64(project_id, id, payload)) FROM payloads"
        f" WHERE (project_id, id) IN (SELECT project_id, id FROM events WHERE {wheres})"
    ).result_rows
    return [*events, *payloads]


def of_user(client: Client, user: str = USER, project: int = PROJECT) -> dict[str, int]:
    """Rows that speak of a user, by whatever tells."""
    number, hashed = int(user.removeprefix("user-")), user_hash(project, user)
    return {
        "events": scalar(client, f"SELECT count() FROM events WHERE project_id = {project} AND user_id = '{user}'"),
        "hash": scalar(client, f"SELECT count() FROM events WHERE user_hash = {hashed}"),
        "tags": scalar(client, f"SELECT count() FROM tag_day WHERE project_id = {project} AND v = 'account-{number}'"),
        "payloads": scalar(
            client, "SELECT count() FROM payloads WHERE (project_id, id) NOT IN (SELECT project_id, id FROM events)"
        ),
        "lists": scalar(client, "SELECT (SELECT count() FROM erasing) + (SELECT count() FROM erasing_tags)"),
    }  # fmt: skip


def nothing(found: dict[str, int]) -> bool:
    return not any(found.values())
