"""A project's grouping rules: read, and replaced as a whole, since their order decides."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from control.project_edits import set_rules
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.errors import HttpError
from grouping.rule_checks import errors, excesses, violations
from schemas.errors import Detail, WireError
from schemas.projects import GroupingRule
from storage.errors import ReadError
from storage.reader.count_calls import ListSkippedRules
from storage.reader.reader import ReadPort

READ_SECONDS: Final = 3.0
"""Rules are shown and saved without what ClickHouse doesn't tell in this time."""


class RuleView(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A rule: what matches `match` (query language) gets what else is set here.

    `fingerprint` may contain `{{ default }}` and variables such as `{{ tags[KEY] }}`; `inApp` and `notInApp` mark frames whose file or function fits a pattern;
    `discard` drops the event. Rules apply in order; the first that sets a fingerprint decides it.
    """

    name: str
    match: str
    fingerprint: list[str] | None = None
    in_app: list[str] | None = None
    not_in_app: list[str] | None = None
    discard: bool = False
    enabled: bool = True


class RuleList(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of a project, in their order."""

    rules: list[RuleView]


class Skipped(Struct, frozen=True, rename="camel"):
    """About how many events a rule was not asked, since it costs too much on events of their size (`tooDear`) or `failed` on them."""

    too_dear: int = 0
    failed: int = 0


class RuleState(RuleView, frozen=True, rename="camel", kw_only=True):
    """A rule as it stands.

    `error` says why it is not asked about any event; `warning` what would be refused now: such a rule of before is asked, but
    skipped on events that it would cost too much on, and what it takes for a variable and isn't stays as it is written.
    `skipped` says on which events of the last 14 days it was, null where that can't be read now.
    """

    error: str | None = None
    warning: str | None = None
    skipped: Skipped | None = None


class RuleStates(Struct, frozen=True):
    """All rules of a project, in their order, each with what is wrong with it."""

    rules: list[RuleState]


async def _get(call: Call[NoInput, NoInput]) -> RuleStates:
    project = call.project()
    return _view(project.grouping_rules, await skips(call.reader, project.number))


async def skips(reader: ReadPort, project: int) -> Mapping[str, Skipped] | None:
    """The events on which rules were skipped, by the rule's name; None where that can't be read: rules can be edited all the same."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            found = await reader.read(ListSkippedRules(project))
    except (ReadError, TimeoutError):
        return None
    kinds: dict[str, dict[str, int]] = {}
    for one in found:
        kinds.setdefault(one.rule, {})[one.kind] = one.events
    return {rule: msgspec.convert(counts, Skipped) for rule, counts in kinds.items()}


def read_rules(given: list[RuleView]) -> list[GroupingRule]:
    """Rules as a project keeps them. Raises HttpError, naming by its place every one that can't ever work or costs too much."""
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
        for rule in given
    ]
    if wrong := violations(rules):
        raise HttpError(WireError.VALIDATION_FAILED, wrong)
    return rules


async def _put(call: Call[NoInput, RuleList]) -> RuleStates:
    rules = read_rules(call.body.rules)
    project = await call.edit(lambda old: set_rules(old, rules))
    return _view(project.grouping_rules, await skips(call.reader, project.number))


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
                error=_told(errors(rule)),
                warning=_told(excesses(rule)),
                skipped=None if skipped is None else skipped.get(rule.name, Skipped()),
            )
            for rule in rules
        ]
    )


def _told(details: Iterable[Detail]) -> str | None:
    return "; ".join(f"{one.field}: {one.message}".removeprefix(": ") for one in details) or None


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/grouping-rules",
        summary="The grouping rules, in their order",
        handler=_get,
        answer=RuleStates,
    ),
    Operation(
        method="PUT",
        path="/projects/{project}/grouping-rules",
        summary="Replace the grouping rules; events that come from now on are grouped by them",
        handler=_put,
        body=RuleList,
        answer=RuleStates,
    ),
)
