"""Grouping rules tried on past events, before they are saved."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, Operation
from dashboard.api.rules import RuleList, read_rules
from dashboard.http.inputs import Query, Time, read_range
from dashboard.rule_trial import MAX_EVENTS, RuleTest, TrialRequest, try_rules


class SampleQuery(Struct, frozen=True):
    """Which past events: the newest of range and query."""

    query: Query = ""
    start: Time | None = None
    end: Time | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="most events")] = MAX_EVENTS


async def _test(call: Call[SampleQuery, RuleList]) -> RuleTest:
    rules, range_ = read_rules(call.body.rules), read_range(call.query.start, call.query.end)
    asked = TrialRequest(call.query.query, range_.start, range_.end, call.query.limit)
    return await call.warned(try_rules(call.state, call.project(), rules, asked))


OPERATIONS = (
    Operation(
        method="POST",
        path="/projects/{project}/grouping-rules:test",
        summary="Which past events rules would match, and into how many issues they would fall; changes nothing",
        handler=_test,
        query=SampleQuery,
        body=RuleList,
        answer=RuleTest,
        is_trial=True,
    ),
)
