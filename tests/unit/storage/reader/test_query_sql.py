from hypothesis import given, settings
from hypothesis import strategies as st

from query.evaluate import matches
from query.event_view import EventView
from query.parse import parse
from query.patterns import write_literal
from query.tree import EVERYTHING, And, Query
from storage.reader.query_sql import (
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


@settings(deadline=None)
@given(queries, views)
def test_the_halves_of_a_query_together_are_the_query(query: Query, view: EventView) -> None:
    of_issue, of_event = split(query)
    assert matches(And((of_issue, of_event)), view, NOW_MS) == matches(query, view, NOW_MS)
    assert of_issue == EVERYTHING or about_issue(of_issue)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"Z{text}Z"))
def test_nothing_of_a_query_stands_in_the_text(text: str) -> None:
    quoted = f'"{write_literal(text)}"'
    for typed in (quoted, f"tags[{quoted}]:{quoted}", f"release:{quoted}", f"file:{quoted}", f"has:{quoted}"):
        sql, values = condition(typed)
        assert text not in sql
        assert "Z" in "".join(map(str, values.values())).upper()


def test_a_hostile_value_travels_as_a_parameter() -> None:
    sql, values = condition(f'a:"{write_literal(HOSTILE)}"')
    assert "DROP" not in sql
    assert f"a={HOSTILE}" in values.values()


def test_a_tag_is_asked_by_the_expression_of_its_index() -> None:
    sql, values = condition("feature:checkout")
    assert sql == "(has(arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)), {p1:String}))"
    assert values["p1"] == "feature=checkout"


def test_a_pair_that_could_be_read_in_two_ways_is_checked_again() -> None:
    sql, _ = condition('tags["a=b"]:c')
    assert "mapContains(tags, {p0:String}) AND tags[{p0:String}] = " in sql


def test_what_asks_about_the_issue_inside_an_alternative_costs_one_look_at_the_issues() -> None:
    sql, _ = condition("is:open OR events:>5 OR feature:checkout")
    assert sql.count("FROM issues FINAL") == 1


def test_an_event_without_a_known_issue_is_judged_as_by_the_evaluator() -> None:
    sql, _ = condition("-is:open")
    assert sql.startswith("(fingerprint NOT IN (")


def test_a_question_about_issues_alone_is_asked_of_their_columns() -> None:
    scope = SqlScope(7, NOW_MS, Parameters())
    sql = issue_condition(parse("is:[open, assigned] -users:<3 lastSeen:>-1h"), scope)
    assert "assignee != ''" in sql
    assert "NOT (users < {p" in sql
    assert "(last_seen > {p" in sql


def test_many_words_of_which_one_must_be_there_are_one_search() -> None:
    sql, values = condition(" OR ".join(f"W{n}" for n in range(20)) + " OR feature:a")
    assert sql.count("multiSearchAny(lower(message)") == 1
    assert "LIKE" not in sql
    assert [f"w{n}" for n in range(20)] in values.values()


def test_many_words_that_must_be_absent_are_one_search() -> None:
    sql, _ = condition(" ".join(f"-w{n}" for n in range(20)) + " feature:a")
    assert sql.startswith("(NOT ((multiSearchAny(lower(message)")
    assert "LIKE" not in sql


def test_few_words_are_looked_for_by_the_index() -> None:
    sql, _ = condition("w1 OR w2")
    assert "multiSearchAny" not in sql
    assert sql.count("lower(message) LIKE") == 2


def test_several_values_of_a_tag_are_asked_by_the_expression_of_its_index() -> None:
    sql, values = condition("feature:[cart, checkout] OR tier:pro")
    assert sql.count("hasAny(arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)), ") == 1
    assert ["feature=cart", "feature=checkout", "tier=pro"] in values.values()
