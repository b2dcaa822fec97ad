import pytest
from hypothesis import given

from query.evaluate import matches
from query.event_view import EventView, IssueView
from query.parse import parse
from query.tree import EVERYTHING, Not, Query
from tests.unit.query.trees import NOW_MS, queries, views

ISSUE = IssueView(status="open", regressed=True, first_seen=1000, last_seen=9000, events=7, users=2)
EVENT = EventView(
    type="TypeError",
    message="Cannot read properties of undefined (reading 'größe') C:\\app 100% Straße",
    tags={"feature": "checkout", "os": "web-tag", "empty": "", "a=b": "c"},
    environment="prod",
    release="shop@1.2.0+7",
    platform="javascript",
    os="web",
    os_version="17.1",
    model="",
    locale="de-DE",
    sdk="browser/0.1.0",
    user="u-1",
    files=("src/cart.ts", "vendor/react.js"),
    functions=("addItem", "render"),
    timestamp=1_769_817_600_000,
    issue=ISSUE,
)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "typeerror",
        "PROPERTIES",
        "prop*undefined",
        '"of undefined (reading"',
        "GRÖSSE OR GRÖßE",
        "100%",
        r'"c:\app"',
        "type:TypeError",
        "type:Type*",
        'message:"cannot read*straße"',
        "environment:prod release:shop@1.* platform:javascript os:web osVersion:17.*",
        "locale:[de-DE, en-US]",
        "sdk:browser/*",
        "user:u-1",
        "file:*cart.ts function:render",
        'model:""',
        "feature:check*",
        "tags[os]:web-tag",
        'tags["a=b"]:c',
        'empty:""',
        "has:feature has:tags[os] has:empty has:user has:file",
        "-has:model -has:absent",
        "-tags[os]:web",
        "-absent:*",
        "is:open is:regressed -is:assigned -is:resolved",
        "is:[resolved, open]",
        "events:>6 events:>=7 events:7 events:<=7 events:<8 users:[2, 3]",
        "firstSeen:<=1970-01-01T00:00:01Z lastSeen:>1970-01-01T00:00:08.999Z",
        "timestamp:>=2026-01-31 timestamp:<2026-02-01",
        "absent:x OR feature:checkout",
    ],
)
def test_queries_that_hold_for_the_event(typed: str) -> None:
    assert matches(parse(typed), EVENT)


@pytest.mark.parametrize(
    "typed",
    [
        "rangeerror",
        "undefined*cannot",
        "type:typeerror",
        "environment:PROD",
        "environment:pro",
        'environment:""',
        "model:*",
        "has:model",
        "has:absent",
        "file:cart.ts",
        "feature:Checkout",
        'feature:""',
        "absent:*",
        'absent:""',
        "is:assigned",
        "events:>7",
        "timestamp:<2026-01-31",
        "-feature:checkout",
        "feature:checkout environment:dev",
    ],
)
def test_queries_that_do_not_hold_for_the_event(typed: str) -> None:
    assert not matches(parse(typed), EVENT)


@pytest.mark.parametrize("typed", ["is:open", "events:>=0", "firstSeen:>1970-01-01", "users:<9"])
def test_condition_on_an_unknown_issue_does_not_hold(typed: str) -> None:
    assert not matches(parse(typed), EventView())


def test_times_before_now_are_counted_from_the_given_now() -> None:
    query = parse("timestamp:>-1h")
    assert matches(query, EVENT, EVENT.timestamp + 3_599_999)
    assert not matches(query, EVENT, EVENT.timestamp + 3_600_000)


def test_many_wildcards_over_a_long_message_take_no_time_to_speak_of() -> None:
    view = EventView(message="a" * 1_000_000)
    assert not matches(parse("a*a*a*a*a*a*a*a*a*a*a*a*a*b"), view)


@given(queries, views)
def test_a_query_and_its_negation_never_agree(query: Query, view: EventView) -> None:
    assert matches(query, view, NOW_MS) != matches(Not(query), view, NOW_MS)


@given(views)
def test_the_empty_query_holds_for_every_event(view: EventView) -> None:
    assert matches(EVERYTHING, view)
