import pytest
from hypothesis import given
from hypothesis import strategies as st

from query.evaluate import matches
from query.event_view import EventView
from query.parse import parse
from query.patterns import write_literal
from query.tree import EVERYTHING, And, Query
from storage.read.query.query_sql import (
    Parameters,
    SqlScope,
    about_issue,
    event_condition,
    issue_condition,
    split,
)
from tests.unit.query.trees import NOW_MS, queries, views

HOSTILE = "x'); DROP TABLE events; -- {p1:String} %s \\"


def condition(typed: str) -> tuple[str, dict[str, object]]:
    scope = SqlScope(7, NOW_MS, Parameters())
    return event_condition(parse(typed), scope), scope.parameters.values


@given(queries, views)
def test_the_halves_of_a_query_together_are_the_query(query: Query, view: EventView) -> None:
    of_issue, of_event = split(query)
    assert matches(And((of_issue, of_event)), view, NOW_MS) == matches(query, view, NOW_MS)
    assert of_issue == EVERYTHING or about_issue(of_issue)


@given(st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"Z{text}Z"))
def test_no_value_of_a_query_is_in_the_text(text: str) -> None:
    quoted = f'"{write_literal(text)}"'
    for typed in (quoted, f"tags[{quoted}]:{quoted}", f"release:{quoted}", f"file:{quoted}", f"has:{quoted}"):
        sql, values = condition(typed)
        assert text not in sql
        assert "Z" in "".join(map(str, values.values())).upper()


PAIRS = "arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)), "
"""The expression of the tags' index."""
CONDITIONS: dict[str, tuple[str, dict[str, int], list[object]]] = {
    "a hostile value travels as a parameter": (f'a:"{write_literal(HOSTILE)}"', {"DROP": 0}, [f"a={HOSTILE}"]),
    "a tag is asked by its index": ("feature:checkout", {f"(has({PAIRS}{{p1:String}}))": 1}, ["feature=checkout"]),
    "several values of a tag are asked by its index": (
        "feature:[cart, checkout] OR tier:pro",
        {f"hasAny({PAIRS}": 1},
        [["feature=cart", "feature=checkout", "tier=pro"]],
    ),
    "a pair that could be read in two ways is checked again": (
        'tags["a=b"]:c', {"mapContains(tags, {p0:String}) AND tags[{p0:String}] = ": 1}, []
    ),
    "a condition on the issue inside an alternative costs one look at the issues": (
        "is:open OR events:>5 OR feature:checkout", {"FROM issues FINAL": 1}, []
    ),
    "an event without a known issue is judged as by the evaluator": ("-is:open", {"(fingerprint NOT IN (": 1}, []),
    "many words of which one must be there are one search": (
        " OR ".join(f"W{n}" for n in range(20)) + " OR feature:a",
        {"multiSearchAny(lower(message)": 1, "LIKE": 0},
        [[f"w{n}" for n in range(20)]],
    ),
    "many words that must be absent are one search": (
        " ".join(f"-w{n}" for n in range(20)) + " feature:a",
        {"(NOT ((multiSearchAny(lower(message)": 1, "LIKE": 0},
        [],
    ),
    "few words are looked for by the index": ("w1 OR w2", {"multiSearchAny": 0, "lower(message) LIKE": 2}, []),
}  # fmt: skip


@pytest.mark.parametrize(("typed", "pieces", "given_values"), CONDITIONS.values(), ids=CONDITIONS)
def test_condition_has_these_pieces_and_values(
    typed: str, pieces: dict[str, int], given_values: list[object]
) -> None:
    sql, values = condition(typed)
    assert {piece: sql.count(piece) for piece in pieces} == pieces
    assert all(value in values.values() for value in given_values)


def test_a_question_about_issues_alone_is_asked_of_their_columns() -> None:
    scope = SqlScope(7, NOW_MS, Parameters())
    sql = issue_condition(parse("is:[open, assigned] -users:<3 lastSeen:>-1h"), scope)
    assert "assignee != ''" in sql
    assert "NOT (users < {p" in sql
    assert "(last_seen > {p" in sql
