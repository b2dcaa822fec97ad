"""A project's grouping rules: read, tried on past events, and replaced as a whole, for order matters."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from control.project_edits import set_rules
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.http_errors import HttpError
from dashboard.http.inputs import RangeQuery
from dashboard.rule_trial import MAX_EVENTS, RuleTest, TrialRequest, try_rules
from grouping.rule_checks import errors, violations
from schemas.errors import Detail, WireError
from schemas.projects import GroupingRule
from storage.errors import ReadError
from storage.read.counts.count_calls import ListSkippedRules
from storage.read.reader import Reader

READ_SECONDS: Final = 3.0
"""How long to wait for skip counts from ClickHouse; later the rules are shown without counts."""


class RuleView(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A rule for events that match `match` (query language).

    `fingerprint` may contain `{{ default }}` and variables such as `{{ tags[KEY] }}`. `inApp` and `notInApp`
    are patterns for the file or function of frames. `discard` drops the event. Rules apply in order; the
    first that sets a fingerprint decides it.
    """

    name: str
    match: str
    fingerprint: list[str] | None = None
    in_app: list[str] | None = None
    not_in_app: list[str] | None = None
    discard: bool = False
    enabled: bool = True


class RuleList(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of a project, in order."""

    rules: list[RuleView]


class Skipped(Struct, frozen=True, rename="camel"):
    """Approximate numbers of events on which a rule was skipped: too expensive (`tooExpensive`) or `failed`."""

    too_expensive: int = 0
    failed: int = 0


class RuleState(RuleView, frozen=True, rename="camel", kw_only=True):
    """A saved rule.

    `error` says why the rule is never evaluated. `skipped` counts events of the last 14 days that skipped the
    rule; null if the counts can't be read now.
    """

    error: str | None = None
    skipped: Skipped | None = None


class RuleStates(Struct, frozen=True):
    """All rules of a project, in order, with their errors."""

    rules: list[RuleState]


async def _get(call: Call[NoInput, NoInput]) -> RuleStates:
    project = call.project()
    return _view(project.grouping_rules, await skip_counts(call.reader, project.number))


async def skip_counts(reader: Reader, project: int) -> Mapping[str, Skipped] | None:
    """Skip counts by rule name; None if ClickHouse doesn't answer, so that rules can still be edited."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            rows = await reader.read(ListSkippedRules(project))
    except (ReadError, TimeoutError):
        return None
    kinds: dict[str, dict[str, int]] = {}
    for row in rows:
        kinds.setdefault(row.rule, {})[row.kind] = row.events
    return {rule: msgspec.convert(counts, Skipped) for rule, counts in kinds.items()}


def read_rules(views: list[RuleView]) -> list[GroupingRule]:
    """Rules as a project stores them. Raises HttpError with the index of every invalid rule."""
    rules = [
        GroupingRule(
            name=rule.name,
            match=rule.match,
            fingerprint=_tuple(rule.fingerprint),
            in_app=_tuple(rule.in_app),
            not_in_app=_tuple(rule.not_in_app),
            discard=rule.discard,
            enabled=rule.enabled,
        )
        for rule in views
    ]
    if details := violations(rules):
        raise HttpError(WireError.VALIDATION_FAILED, details)
    return rules


async def _put(call: Call[NoInput, RuleList]) -> RuleStates:
    rules = read_rules(call.body.rules)
    project = await call.edit(lambda old: set_rules(old, rules))
    return _view(project.grouping_rules, await skip_counts(call.reader, project.number))


class SampleQuery(RangeQuery, frozen=True):
    """The sample: the newest events that match the query in the range."""

    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="maximum number of events")] = MAX_EVENTS


async def _test(call: Call[SampleQuery, RuleList]) -> RuleTest:
    rules, query = read_rules(call.body.rules), call.query
    sample = TrialRequest(query.query, **query.bounds(), limit=query.limit)
    return await call.with_warnings(try_rules(call.state, call.project(), rules, sample))


def _tuple(items: list[str] | None) -> tuple[str, ...] | None:
    return tuple(items) if items else None


def _view(rules: tuple[GroupingRule, ...], skipped: Mapping[str, Skipped] | None) -> RuleStates:
    return RuleStates(
        [
            RuleState(
                name=rule.name,
                match=rule.match,
                fingerprint=list(rule.fingerprint) if rule.fingerprint else None,
                in_app=list(rule.in_app) if rule.in_app else None,
                not_in_app=list(rule.not_in_app) if rule.not_in_app else None,
                discard=rule.discard,
                enabled=rule.enabled,
                error=_joined(errors(rule)),
                skipped=None if skipped is None else skipped.get(rule.name, Skipped()),
            )
            for rule in rules
        ]
    )


def _joined(details: Iterable[Detail]) -> str | None:
    return "; ".join(f"{detail.field}: {detail.message}".removeprefix(": ") for detail in details) or None


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/grouping-rules",
        summary="The grouping rules, in order",
        handler=_get,
        answer=RuleStates,
    ),
    Operation(
        method="PUT",
        path="/projects/{project}/grouping-rules",
        summary="Replace the grouping rules; they apply to new events",
        handler=_put,
        body=RuleList,
        answer=RuleStates,
    ),
    Operation(
        method="POST",
        path="/projects/{project}/grouping-rules:test",
        summary="Try rules on past events: what they match and how many issues result; changes nothing",
        handler=_test,
        query=SampleQuery,
        body=RuleList,
        answer=RuleTest,
        is_trial=True,
    ),
)
