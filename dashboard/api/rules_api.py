"""A project's grouping rules: read, tried on past events, and replaced as a whole, for order matters."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
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


class RuleView(GroupingRule, frozen=True, rename="camel", omit_defaults=False, forbid_unknown_fields=True):
    """A rule for events that match `match` (query language).

    `fingerprint` may contain `{{ default }}` and variables such as `{{ tags[KEY] }}`. `inApp` and `notInApp`
    are patterns for the file or function of frames. `discard` drops the event. Rules apply in order; the
    first that sets a fingerprint decides it.
    """


class RuleList(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of a project, in order."""

    rules: list[RuleView]


class Skipped(Struct, frozen=True, rename="camel"):
    """Approximate numbers of events on which a rule was skipped: too expensive (`tooExpensive`) or `failed`."""

    too_expensive: int = 0
    failed: int = 0


class RuleState(RuleView, frozen=True, rename="camel"):
    """A saved rule.

    `error` says why the rule is never evaluated. `skipped` counts events of the last 14 days that skipped the
    rule; null if the counts can't be read now.
    """

    error: str | None = None
    skipped: Skipped | None = None


class RuleStates(Struct, frozen=True):
    """All rules of a project, in order, with their errors."""

    rules: list[RuleState]


@operation("GET", "/projects/{project}/grouping-rules", Role.VIEWER)
async def _get(call: Call[NoInput, NoInput]) -> RuleStates:
    """The grouping rules, in order."""
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


def check_rules(rules: list[GroupingRule]) -> None:
    """Raises HttpError with the index of every rule that can't be saved."""
    if details := violations(rules):
        raise HttpError(WireError.VALIDATION_FAILED, details)


def _read(body: RuleList) -> list[GroupingRule]:
    """Rules as a project stores them, an empty list as none. Raises HttpError."""
    rules = [
        GroupingRule(
            rule.name,
            rule.match,
            rule.fingerprint or None,
            rule.in_app or None,
            rule.not_in_app or None,
            rule.discard,
            rule.enabled,
        )
        for rule in body.rules
    ]
    check_rules(rules)
    return rules


@operation("PUT", "/projects/{project}/grouping-rules", Role.ADMIN)
async def _put(call: Call[NoInput, RuleList]) -> RuleStates:
    """Replace the grouping rules; they apply to new events."""
    rules = _read(call.body)
    project = await call.edit(lambda old: replace(old, grouping_rules=tuple(rules)))
    return _view(project.grouping_rules, await skip_counts(call.reader, project.number))


class SampleQuery(RangeQuery, frozen=True):
    """The sample: the newest events that match the query in the range."""

    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="maximum number of events")] = MAX_EVENTS


@operation("POST", "/projects/{project}/grouping-rules:test", Role.ADMIN, is_trial=True)
async def _test(call: Call[SampleQuery, RuleList]) -> RuleTest:
    """Try rules on past events: the events they match and the resulting issues; changes nothing."""
    rules, query = _read(call.body), call.query
    sample = TrialRequest(query.query, **query.bounds(), limit=query.limit)
    return await call.with_warnings(try_rules(call.state, call.project(), rules, sample))


def _view(rules: tuple[GroupingRule, ...], skipped: Mapping[str, Skipped] | None) -> RuleStates:
    return RuleStates(
        [
            RuleState(
                **asdict(rule),
                error=_joined(errors(rule)),
                skipped=None if skipped is None else skipped.get(rule.name, Skipped()),
            )
            for rule in rules
        ]
    )


def _joined(details: Iterable[Detail]) -> str | None:
    return "; ".join(f"{detail.field}: {detail.message}".removeprefix(": ") for detail in details) or None


OPERATIONS = (_get, _put, _test)
