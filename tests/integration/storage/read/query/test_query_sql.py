"""SQL and the evaluator say the same of the same events."""

import secrets
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from query.evaluate import matches
from query.event_view import EventView, IssueView
from query.patterns import normal
from query.tree import And, Filter, Has, Not, Or, Pattern, Query, Text
from schemas.ids import user_hash
from schemas.times import from_ms
from storage.client import Client
from storage.read.query.query_sql import (
    PAIRS,
    Parameters,
    SqlScope,
    about_issue,
    current_issues,
    event_condition,
    issue_condition,
)
from tests.unit.query.trees import NOW_MS, WORDS, issues, queries, views

QUERIES = 16
EVENTS = "toUInt64(id) FROM events WHERE project_id = {}"

worlds = st.tuples(
    st.lists(issues, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 5), views), min_size=1, max_size=12),
    st.lists(queries, min_size=QUERIES, max_size=QUERIES),
)
World = tuple[list[IssueView], list[tuple[int, EventView]], list[Query]]


def insert(database: Client, project: int, known: list[IssueView], events: list[EventView]) -> None:
    """Events get their position as id and fingerprint; an issue has the fingerprints of its events."""
    database.insert(
        "events",
        [
            [
                *(project, number, from_ms(event.timestamp), number, from_ms(event.timestamp), event.release),
                *(event.environment, event.platform, "error", event.os, event.os_version, event.model),
                *(event.locale, event.sdk, event.user, user_hash(project, event.user) if event.user else 0),
                *(event.type, event.message, list(event.files), list(event.functions), event.tags, 90),
            ]
            for number, event in enumerate(events)
        ],
        column_names=[
            *("project_id", "fingerprint", "ts", "id", "received", "release"),
            *("environment", "platform", "kind", "os", "os_version", "model"),
            *("locale", "sdk", "user_id", "user_hash"),
            *("error_type", "message", "files", "functions", "tags", "retention_days"),
        ],
    )
    if not known:
        return
    database.insert(
        "issues",
        [
            [
                *(project, number, [n for n, event in enumerate(events) if event.issue is issue]),
                *(issue.status, int(issue.regressed), issue.assignee, issue.first_release),
                *(
                    from_ms(issue.first_seen),
                    from_ms(issue.last_seen),
                    issue.events,
                    issue.users,
                    1,
                    from_ms(issue.escalated),
                ),
            ]
            for number, issue in enumerate(known)
        ],
        column_names=[
            *("project_id", "issue_id", "fingerprints", "status", "regressed", "assignee", "first_release"),
            *("first_seen", "last_seen", "events", "users", "version", "escalated"),
        ],
    )


def placed(world: World) -> tuple[list[IssueView], list[EventView]]:
    """The world's issues, and its events with their issue; some have none."""
    known = [replace(issue) for issue in world[0]]
    events = [replace(event, issue=known[index] if index < len(known) else None) for index, event in world[1]]
    return known, events


def answers(
    database: Client,
    tables: list[tuple[str, list[str]]],
    parameters: Parameters,
    alone: Callable[[int, str], bool] = lambda *_: False,
) -> list[list[set[int]]]:
    """The numbers that each condition selects, for each `(number, table and project)`, all in one question.

    The conditions are columns of one reading of the table, a twentieth of the cost of a reading for each.
    Those that `alone` holds for also limit a reading, so that indexes are used, and must select the same.
    """
    selects = []
    limited: dict[tuple[int, int], set[int]] = {}
    for table, (source, conditions) in enumerate(tables):
        number, rest = source.split(" ", 1)
        holds = ", ".join(f"toBool({condition})" for condition in conditions)
        selects.append(f"SELECT {table} AS t, -1 AS q, {number} AS found, [{holds}] AS holds {rest}")
        for q, condition in enumerate(conditions):
            if alone(q, condition):
                limited[table, q] = set()
                selects.append(f"SELECT {table}, {q}, {number}, [] {rest} AND {condition}")
    rows = database.query(
        " UNION ALL ".join(selects), parameters=parameters.values, settings={"max_threads": 1}
    ).result_rows
    selected = [[set[int]() for _ in conditions] for _, conditions in tables]
    for table, q, number, holds in rows:
        if q >= 0:
            limited[table, q].add(number)
        for numbers, held in zip(selected[table], holds, strict=q < 0):
            if held:
                numbers.add(number)
    for (table, q), numbers in limited.items():
        assert numbers == selected[table][q], tables[table][1][q]
    return selected


def uses_index(_: int, condition: str) -> bool:
    """Whether an index of `events` covers the columns of the condition."""
    return PAIRS in condition or "user_hash" in condition


@settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ]
)
@given(worlds)
def test_sql_and_evaluator_agree(database: Client, world: World) -> None:
    project = secrets.randbelow(1 << 31)
    known, events = placed(world)
    insert(database, project, known, events)
    scope = SqlScope(project, NOW_MS, Parameters())
    about = [query for query in world[2] if about_issue(query)]
    of_events, of_issues = answers(
        database,
        [
            (EVENTS.format(project), [event_condition(query, scope) for query in world[2]]),
            (
                f"issue_id FROM {current_issues(scope)}",
                [issue_condition(query, scope) for query in about] or ["1"],
            ),
        ],
        scope.parameters,
        alone=lambda q, _: q % 4 == 0,
    )
    for query, numbers in zip(world[2], of_events, strict=True):
        assert numbers == {n for n, event in enumerate(events) if matches(query, event, NOW_MS)}, query
    for query, numbers in zip(about, of_issues, strict=bool(about)):
        holding = {n for n, issue in enumerate(known) if matches(query, EventView(issue=issue), NOW_MS)}
        assert numbers == holding, query


def corner(word: str) -> EventView:
    """An event that has the word wherever an event can have one."""
    return EventView(
        type=word,
        message=f"<{word}>\n{word}",
        tags={"a": word, "a=b": word, word: "x"},
        environment=word,
        model=word,
        user=word,
        files=(word, "f"),
        functions=(word,),
        timestamp=NOW_MS,
    )


def corner_queries(word: str) -> Iterator[Query]:
    """Queries for the word as it is, and with a wildcard around, before and after it."""
    for parts in ((word,), ("", word, ""), ("", word), (word, ""), ("<", word), (word, word)):
        pattern = Pattern(normal(parts))
        yield Text(Pattern(normal([part for part in parts if part] or [""])))
        for key in ("environment", "model", "user", "file", "function", "message"):
            yield Filter(key, False, (pattern,))
        for key in ("a", "a=b"):
            yield Filter(key, True, (pattern,))
    yield Filter("a", True, (Pattern((f"b={word}",)),))
    yield Has(word, True)


@pytest.mark.parametrize("first", range(0, len(WORDS), 14))
def test_sql_and_evaluator_agree_on_every_special_word(database: Client, first: int) -> None:
    project = secrets.randbelow(1 << 31)
    events = [*map(corner, WORDS), corner("b=="), EventView(timestamp=NOW_MS)]
    insert(database, project, [], events)
    for word in WORDS[first : first + 14]:
        scope = SqlScope(project, NOW_MS, Parameters())
        queries = list(dict.fromkeys(corner_queries(word)))
        conditions = [event_condition(query, scope) for query in queries]
        [found] = answers(
            database, [(EVENTS.format(project), conditions)], scope.parameters, alone=uses_index
        )
        for query, numbers in zip(queries, found, strict=True):
            assert numbers == {n for n, event in enumerate(events) if matches(query, event, NOW_MS)}, query


@pytest.mark.parametrize("first", range(0, len(WORDS) - 10, 10))
def test_sql_and_evaluator_agree_on_many_words_and_tags_together(database: Client, first: int) -> None:
    project = secrets.randbelow(1 << 31)
    events = [*map(corner, WORDS), corner("b=="), EventView(timestamp=NOW_MS)]
    insert(database, project, [], events)
    words = tuple(Text(Pattern((word,))) for word in (*WORDS[first : first + 10], "never", "anywhere"))
    values = tuple(Pattern((word,)) for word in WORDS[first : first + 10])
    queries: list[Query] = [
        Or(words),
        And(tuple(map(Not, words))),
        And((*map(Not, words), Has("a", True))),
        Or((*words, Filter("a", True, values[:3]), Filter("a=b", True, values[:3]))),
        Filter("a", True, values),
        Not(Filter("a", True, values)),
        Or((Filter("a", True, values[:1]), Filter(WORDS[first], True, (Pattern(("x",)),)))),
    ]
    scope = SqlScope(project, NOW_MS, Parameters())
    conditions = [event_condition(query, scope) for query in queries]
    [found] = answers(
        database, [(EVENTS.format(project), conditions)], scope.parameters, alone=lambda *_: True
    )
    for query, numbers in zip(queries, found, strict=True):
        assert numbers == {n for n, event in enumerate(events) if matches(query, event, NOW_MS)}, query
