"""The examples of docs/query-language.md match the events that the page says."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from query.evaluate import matches
from query.event_view import EventView, IssueView, from_json
from query.parse import parse
from query.tree import FIELDS, ISSUE_FIELDS
from schemas.errors import QueryError
from schemas.times import parse_iso

PAGE = (Path(__file__).parents[3] / "docs" / "query-language.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    found = re.search(rf"^```{name}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def table(heading: str) -> list[list[str]]:
    """Cells of the rows under a table's heading, without code marks."""
    lines = PAGE[PAGE.index(heading) :].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


AT = parse_iso("2026-01-31T08:15:30.250Z")


def example() -> EventView:
    issue = IssueView(
        status="open",
        regressed=True,
        first_release="shop@1.2.0+7",
        first_seen=parse_iso("2026-01-02T00:00:00Z"),
        last_seen=AT,
        events=120,
        users=40,
    )
    return replace(from_json(block("json").encode(), "browser/0.1.0", AT + 1000), issue=issue)


@pytest.mark.parametrize("query", block("holds").splitlines())
@pytest.mark.holds("contract 4 language")
def test_the_queries_of_the_page_match_their_examples(query: str) -> None:
    assert matches(parse(query), example(), AT)


@pytest.mark.parametrize("query", block("fails").splitlines())
def test_the_queries_of_the_page_exclude_their_counterexamples(query: str) -> None:
    assert not matches(parse(query), example(), AT)


@pytest.mark.parametrize("row", table("| written | finds events |"))
@pytest.mark.holds("contract 4 language")
def test_every_way_of_writing_is_understood(row: list[str]) -> None:
    for query in re.findall(r"`([^`]+)`", row[0]):
        parse(query)


@pytest.mark.parametrize("row", table("| text | position | expected |"))
@pytest.mark.holds("contract 4 language")
def test_refusals_name_place_and_expectation(row: list[str]) -> None:
    with pytest.raises(QueryError) as refused:
        parse(row[0].strip("`"))
    assert (str(refused.value.position), refused.value.expected) == (row[1], row[2])


@pytest.mark.holds("contract 4 language")
def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", " ".join(row[0] for row in table("| key | compared with |"))))
    assert {*FIELDS, *ISSUE_FIELDS} <= named
