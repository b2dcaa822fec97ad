"""Grouping rules tried on a project's past events: the sample, the trial, and what it says."""

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta, Struct

from dashboard.dependencies import State
from grouping.trial import Move, PastEvent, Trial, moves
from schemas.ids import hex64, issue_id
from schemas.projects import GroupingRule, Project
from schemas.times import iso
from storage.reader.answers import KeyWarning
from storage.reader.event_calls import SampleEvents
from storage.reader.issue_calls import FindIssues

MAX_EVENTS: Final = 2_000
MAX_EXAMPLES: Final = 20
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


class TrialRequest(Struct, frozen=True):
    """Which past events: the newest `limit` of query and range (Unix ms)."""

    query: str = ""
    start: int | None = None
    end: int | None = None
    limit: int = MAX_EVENTS


class RuleFigures(Struct, frozen=True):
    """One rule: how many events its `match` fits, and how many it decides (sets their fingerprint, or drops them).

    It was not asked about `skipped` events, and `error` says why: it can't be read, or costs too much on them.
    """

    index: int
    name: str
    matched: int
    decided: int
    skipped: int
    error: str | None = None


class Before(Struct, frozen=True, rename="camel"):
    """Where an event is now."""

    issue_id: Hex
    fingerprint: Hex


class After(Before, frozen=True, rename="camel"):
    """Where it would be, and why: `rule` is what decides, `parts` are what is equal in all events of the fingerprint."""

    rule: str
    parts: list[str]
    is_known: bool
    """Whether the issue is there already."""


class Example(Struct, frozen=True, rename="camel"):
    """Events that would go the same way: `eventId` is the newest of them; `after` is null where they would be dropped."""

    event_id: str
    issue_id: Hex
    error_type: str
    message: str
    events: int
    rules: list[int]
    before: Before
    after: After | None


class RuleTest(Struct, frozen=True, rename="camel"):
    """What rules would do to past events.

    `sampled` events were looked at, the newest ones, received from `oldest` to `newest` (null without any); where not `whole`, time was up before the rest.
    `matched` have a rule that fits; `moved` would be in another issue; `discarded` would be dropped. The affected ones, matched or moved, are in
    `issuesBefore` issues now and would be in `issuesAfter`. `warnings` are what is doubtful in the query.
    """

    sampled: int
    whole: bool
    unreadable: int
    oldest: str | None
    newest: str | None
    matched: int
    moved: int
    discarded: int
    issues_before: int
    issues_after: int
    rules: list[RuleFigures]
    examples: list[Example]
    warnings: list[KeyWarning] = []


async def try_rules(
    state: State, project: Project, rules: list[GroupingRule], asked: TrialRequest
) -> RuleTest:
    """The trial of rules that parse. Raises Refused while too many wait, and what the reader raises."""
    samples = await state.parts.reader.read(
        SampleEvents(project.number, asked.query, start=asked.start, end=asked.end, limit=asked.limit)
    )
    events = [
        PastEvent(bytes(one.event), int(one.issue_id, 16), int(one.fingerprint, 16), one.sdk, one.received_ms)
        for one in samples
    ]
    trial = await state.trials.run(rules, events, frozenset(int(one, 16) for one in project.discarded))
    new = sorted({one.found.hex for one in trial.events if one.found.hash != one.past.fingerprint})
    known = await state.parts.reader.read(FindIssues(project.number, new))
    return describe(
        project.number, rules, trial, {int(name, 16): int(issue, 16) for name, issue in known.items()}
    )


def describe(project: int, rules: list[GroupingRule], trial: Trial, known: dict[int, int]) -> RuleTest:
    """The figures and examples of a trial; `known` are the issues of fingerprints that belong to one."""
    ways = moves(trial.events, lambda fingerprint: known.get(fingerprint) or issue_id(project, fingerprint))
    # What changes is what people look for; among it the most travelled ways come first.
    felt = sorted((way for way in ways if way.is_felt), key=lambda way: way.issue == way.one.past.issue)
    there = {one.past.issue for one in trial.events} | set(known.values())
    times = [one.past.received_ms for one in trial.events]
    return RuleTest(
        sampled=len(trial.events) + trial.unreadable,
        whole=trial.whole,
        unreadable=trial.unreadable,
        oldest=iso(min(times)) if times else None,
        newest=iso(max(times)) if times else None,
        matched=_events(way for way in ways if way.one.fitting),
        moved=_events(way for way in felt if way.issue not in {None, way.one.past.issue}),
        discarded=_events(way for way in ways if way.issue is None),
        issues_before=len({way.one.past.issue for way in felt}),
        issues_after=len({way.issue for way in felt} - {None}),
        rules=[_figures(position, rule, ways, trial.errors) for position, rule in enumerate(rules)],
        examples=[_example(way, there) for way in felt[:MAX_EXAMPLES]],
    )


def _events(ways: Iterable[Move]) -> int:
    return sum(way.events for way in ways)


def _figures(position: int, rule: GroupingRule, ways: list[Move], errors: dict[str, str]) -> RuleFigures:
    return RuleFigures(
        index=position,
        name=rule.name,
        matched=_events(way for way in ways if position in way.one.fitting),
        decided=_events(way for way in ways if way.one.found.rule == f"rule:{rule.name}"),
        skipped=_events(way for way in ways if position in way.one.skipped),
        error=errors.get(rule.name),
    )


def _example(way: Move, there: set[int]) -> Example:
    one, after = way.one, None
    if way.issue is not None:
        after = After(
            issue_id=hex64(way.issue),
            fingerprint=one.found.hex,
            rule=one.found.rule,
            parts=list(one.found.parts),
            is_known=way.issue in there,
        )
    before = Before(hex64(one.past.issue), hex64(one.past.fingerprint))
    return Example(
        event_id=one.id,
        issue_id=before.issue_id,
        error_type=one.type,
        message=one.message,
        events=way.events,
        rules=list(one.fitting),
        before=before,
        after=after,
    )
