"""Trials of grouping rules on a sample of a project's past events."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from dashboard.dependencies import State
from dashboard.http.http_errors import HttpError
from grouping.trial import Move, PastEvent, Trial, moves
from schemas.ids import hex64, issue_id
from schemas.projects import GroupingRule, Project
from schemas.read_api import KeyWarning
from schemas.times import iso
from storage.errors import ReadError
from storage.read.events.event_calls import SampleEvents
from storage.read.issues.issue_calls import FindIssues

MAX_EVENTS: Final = 2_000
MAX_EXAMPLES: Final = 20
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


class TrialRequest(Struct, frozen=True):
    """The sample: the newest `limit` events that match the query in the range (Unix milliseconds)."""

    query: str = ""
    start: int | None = None
    end: int | None = None
    limit: int = MAX_EVENTS


class RuleFigures(Struct, frozen=True):
    """One rule: how many events match it, and how many it decides (sets their fingerprint or drops them).

    It was not evaluated on `skipped` events; `error` says why: the rule doesn't parse, or costs too much on
    them. On each of the others it took so many `microseconds` of CPU, as a mean; null without any.
    """

    index: int
    name: str
    matched: int
    decided: int
    skipped: int
    microseconds: float | None = None
    error: str | None = None


class Before(Struct, frozen=True, rename="camel"):
    """The current group of an event."""

    issue_id: Hex
    fingerprint: Hex


class After(Before, frozen=True, rename="camel"):
    """The new group: `rule` decides it, `parts` are equal in all events of the fingerprint."""

    rule: str
    parts: list[str]
    is_known: bool
    """Whether the issue exists already."""


class Example(Struct, frozen=True, rename="camel"):
    """Events with the same move: `eventId` is the newest; `after` is null if they would be discarded."""

    event_id: str
    issue_id: Hex
    error_type: str
    message: str
    events: int
    rules: list[int]
    before: Before
    after: After | None


class RuleTest(Struct, frozen=True, rename="camel"):
    """The effect of rules on past events.

    `sampled` counts the newest events, received from `oldest` to `newest` (null without events). If `whole`
    is false, the trial reached its time limit before the rest. `matched` events match a rule, `moved` events
    would change their issue, and `discarded` events would be discarded. The affected events, matched or moved,
    are in `issuesBefore` issues now and would be in `issuesAfter`. `warnings` names unknown keys of the
    query.
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
    state: State,
    project: Project,
    rules: list[GroupingRule],
    sample: TrialRequest,
    planned: Mapping[int, int] | None = None,
) -> RuleTest:
    """Try rules that parse.

    `planned` are issues of fingerprints that will be merged with the rules. Raises HttpError if too many
    trials are waiting, and the reader's errors.
    """
    reader, trial = state.dependencies.reader, await _tried(state, project, rules, sample)
    new = sorted({event.found.hex for event in trial.events if event.found.hash != event.past.fingerprint})
    known = await reader.read(FindIssues(project.number, new))
    issues = {int(name, 16): int(issue, 16) for name, issue in known.items()}
    return describe(project.number, rules, trial, issues | dict(planned or {}))


async def catches_only(state: State, project: Project, rule: GroupingRule, issue: int) -> bool:
    """Whether a rule, tried alone on the newest past events that it matches, catches some of an issue and no others.

    False also where the trial isn't whole, or can't be made now.
    """
    try:
        trial = await _tried(state, project, [rule], TrialRequest(rule.match))
    except (HttpError, ReadError):
        return False
    return trial.whole and {event.past.issue for event in trial.events if event.fitting} == {issue}


async def _tried(state: State, project: Project, rules: list[GroupingRule], sample: TrialRequest) -> Trial:
    reader = state.dependencies.reader
    samples = await reader.read(
        SampleEvents(project.number, sample.query, start=sample.start, end=sample.end, limit=sample.limit)
    )
    events = [
        PastEvent(
            bytes(past.event), int(past.issue_id, 16), int(past.fingerprint, 16), past.sdk, past.received_ms
        )
        for past in samples
    ]
    discarded = frozenset(int(fingerprint, 16) for fingerprint in project.discarded)
    return await state.trials.try_rules(rules, events, discarded)


def describe(project: int, rules: list[GroupingRule], trial: Trial, known: dict[int, int]) -> RuleTest:
    """The figures and examples of a trial; `known` maps fingerprints to their existing issues."""
    all_moves = moves(
        trial.events, lambda fingerprint: known.get(fingerprint) or issue_id(project, fingerprint)
    )
    # `moves` sorts by number of events; moves to another issue come first.
    affected = sorted(
        (move for move in all_moves if move.is_affected), key=lambda move: move.issue == move.event.past.issue
    )
    existing = {event.past.issue for event in trial.events} | set(known.values())
    times = [event.past.received_ms for event in trial.events]
    return RuleTest(
        sampled=len(trial.events) + trial.unreadable,
        whole=trial.whole,
        unreadable=trial.unreadable,
        oldest=iso(min(times)) if times else None,
        newest=iso(max(times)) if times else None,
        matched=_events(move for move in all_moves if move.event.fitting),
        moved=_events(move for move in affected if move.issue not in {None, move.event.past.issue}),
        discarded=_events(move for move in all_moves if move.issue is None),
        issues_before=len({move.event.past.issue for move in affected}),
        issues_after=len({move.issue for move in affected} - {None}),
        rules=[_figures(position, rule, all_moves, trial) for position, rule in enumerate(rules)],
        examples=[_example(move, existing) for move in affected[:MAX_EXAMPLES]],
    )


def _events(all_moves: Iterable[Move]) -> int:
    return sum(move.events for move in all_moves)


def _figures(position: int, rule: GroupingRule, all_moves: list[Move], trial: Trial) -> RuleFigures:
    skipped = _events(move for move in all_moves if position in move.event.skipped)
    tried = len(trial.events) - skipped if position in trial.cpu_ns else 0
    return RuleFigures(
        index=position,
        name=rule.name,
        matched=_events(move for move in all_moves if position in move.event.fitting),
        decided=_events(move for move in all_moves if move.event.found.rule == f"rule:{rule.name}"),
        skipped=skipped,
        microseconds=round(trial.cpu_ns[position] / tried / 1000, 2) if tried else None,
        error=trial.errors.get(rule.name),
    )


def _example(move: Move, existing: set[int]) -> Example:
    event, after = move.event, None
    if move.issue is not None:
        after = After(
            issue_id=hex64(move.issue),
            fingerprint=event.found.hex,
            rule=event.found.rule,
            parts=list(event.found.parts),
            is_known=move.issue in existing,
        )
    before = Before(hex64(event.past.issue), hex64(event.past.fingerprint))
    return Example(
        event_id=event.id,
        issue_id=before.issue_id,
        error_type=event.type,
        message=event.message,
        events=move.events,
        rules=list(event.fitting),
        before=before,
        after=after,
    )
