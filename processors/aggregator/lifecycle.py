"""The state machine of an issue, driven by commands and events in the order of the log. Pure.

| state    | command resolve       | command ignore        | command reopen | an event                               |
| -------- | --------------------- | --------------------- | -------------- | -------------------------------------- |
| open     | resolved              | ignored               | open           | open                                   |
| resolved | resolved, another fix | ignored               | open, reopened | after the fix: open, regressed         |
| ignored  | resolved              | ignored, other limits | open, reopened | that reaches the limit: open, reopened |

`_BY_COMMAND` has the columns of the commands, `_BY_EVENT` the rows of the last one.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict, replace

from processors.aggregator.findings import by_event
from processors.aggregator.totals import Users
from schemas.changes import NEXT, IgnoreUntil, UpdateData
from schemas.issues import Activity, ActivityKind, Command, IssueRecord
from schemas.life import Fix, Ignored
from schemas.merges import NewEvents
from schemas.release_order import compare, highest, newest_by_app
from schemas.times import parse_iso

MAX_OLDER: Final = 500


class LifecycleChange(NamedTuple):
    """An issue after a change, and the activities to publish."""

    record: IssueRecord
    activities: tuple[Activity, ...] = ()


def update(record: IssueRecord, command: Command, data: UpdateData) -> LifecycleChange:
    """Apply a command of kind `update`; setting the current state again is no change."""
    activities: list[Activity] = []
    changed, kind, details = (
        (record, None, {}) if data.wanted is None else _BY_COMMAND[data.wanted](record, data)
    )
    if kind is not None:
        activities.append(by_command(record, command, kind, details))
    if data.assignee is not UNSET and data.assignee != changed.assignee:
        changed = replace(changed, assignee=data.assignee)
        activities.append(by_command(record, command, "assigned", {"assignee": data.assignee}))
    return LifecycleChange(changed, tuple(activities))


def by_command(record: IssueRecord, command: Command, kind: ActivityKind, data: dict[str, Any]) -> Activity:
    """The activity of a command's effect; its id is the same however often the command is delivered."""
    return Activity(
        id=f"{record.id}-{command.id}-{kind}",
        issue=record.id,
        project_id=record.project_id,
        kind=kind,
        by=command.by,
        at=command.at,
        data=data,
    )


def transition(
    record: IssueRecord, news: NewEvents, found: Sequence[Activity] = (), origin: str = ""
) -> LifecycleChange:
    """Judge the state of an issue after an increment and its findings, `found`.

    `origin` names the merged issue that received it.
    """
    return _BY_EVENT[record.status](record, news, found, origin)


def regresses(fix: Fix | None, release: str) -> bool:
    """Whether an event of this release shows that the fix failed; without a known fix, any later event does."""
    if fix is None:
        return True
    for boundary in fix.boundaries:
        order = compare(release, boundary)
        if order is not None:
            return order > 0 or (order == 0 and not fix.after)
    return not (release in fix.older or any((compare(release, older) or 0) < 0 for older in fix.older))


def fix_in(resolved_in: str, known: Sequence[str]) -> Fix:
    """The fix in a release, or in the next one after the known releases (in the order in which they were seen)."""
    if resolved_in == NEXT:
        boundaries = newest_by_app(known)
        older = [name for name in known if not any(compare(name, b) is not None for b in boundaries)]
        return Fix(boundaries, after=True, older=_remembered(older))
    before = known[: known.index(resolved_in)] if resolved_in in known else known
    older = [name for name in before if compare(name, resolved_in) is None]
    return Fix((resolved_in,), older=_remembered(older))


def _remembered(older: Sequence[str]) -> tuple[str, ...]:
    return tuple(highest(older)[-MAX_OLDER:])


_Outcome = tuple[IssueRecord, ActivityKind | None, dict[str, Any]]
"""The record after a command; the activity's kind (None where nothing changes) and data."""


def _reopen(record: IssueRecord, data: UpdateData) -> _Outcome:  # noqa: ARG001
    return (
        (record, None, {}) if record.status == "open" else (opened(record, regressed=False), "reopened", {})
    )


def _resolve(record: IssueRecord, data: UpdateData) -> _Outcome:
    resolved_in = None if data.resolved_in is UNSET else data.resolved_in
    if record.status == "resolved" and record.resolved_in == resolved_in and resolved_in != NEXT:
        return record, None, {}
    known = [*data.known, *(name for name in record.releases if name not in data.known)]
    fix = fix_in(resolved_in, known) if resolved_in else None
    changed = replace(
        opened(record, regressed=False),
        status="resolved",
        resolved_in=resolved_in,
        life=replace(record.life, fix=fix, ignored=None),
    )
    return changed, "resolved", _fix_details(changed)


def _fix_details(record: IssueRecord) -> dict[str, Any]:
    """Data of the activity: `resolvedIn`, and `after` if there is one.

    `after` is the release after which the next one of the issue's app comes.
    """
    if not record.resolved_in:
        return {}
    details, fix = {"resolvedIn": record.resolved_in}, record.life.fix
    if fix is not None and fix.after:
        of_app = [name for name in fix.boundaries if compare(name, record.last_release) is not None]
        if of_app:
            details["after"] = of_app[0]
    return details


def _ignore(record: IssueRecord, data: UpdateData) -> _Outcome:
    given = data.ignore_until
    until = {} if not isinstance(given, IgnoreUntil) else _limits(given)
    if record.status == "ignored" and not until and record.ignore_until is None:
        return record, None, {}
    changed = replace(
        opened(record, regressed=False),
        status="ignored",
        ignore_until=until or None,
        life=replace(record.life, fix=None, ignored=Ignored()),
    )
    return changed, "ignored", {"ignoreUntil": until} if until else {}


def _limits(until: IgnoreUntil) -> dict[str, Any]:
    return {name: value for name, value in asdict(until).items() if value is not None}


def opened(record: IssueRecord, *, regressed: bool) -> IssueRecord:
    """The issue reopened, with the details of how it was resolved or ignored removed."""
    return replace(
        record,
        status="open",
        regressed=regressed,
        resolved_in=None,
        ignore_until=None,
        life=replace(record.life, fix=None, ignored=None),
    )


def _resolved(
    record: IssueRecord,
    news: NewEvents,
    found: Sequence[Activity],  # noqa: ARG001
    origin: str,
) -> LifecycleChange:
    for release in news.releases:
        if regresses(record.life.fix, release):
            details = {"release": release, "resolvedIn": record.resolved_in}
            activity = by_event(record, news, origin, "regressed", details)
            return LifecycleChange(opened(record, regressed=True), (activity,))
    return LifecycleChange(record)


def _ignored(record: IssueRecord, news: NewEvents, found: Sequence[Activity], origin: str) -> LifecycleChange:
    if record.ignore_until is None:
        return LifecycleChange(record)
    until, since = record.ignore_until, record.life.ignored or Ignored()
    if "time" in until:
        reached = news.received_ms >= parse_iso(until["time"])
    elif "events" in until:
        since = replace(since, events=since.events + news.events)
        reached = since.events >= until["events"]
    elif "escalating" in until:
        # One that escalated before has to rise again.
        reached = any(one.kind == "escalated" for one in found)
    else:
        users = Users(since.users_sketch)
        users.add(news.users)
        since = replace(since, users_sketch=users.text())
        reached = users.count >= until["users"]
    if not reached:
        return LifecycleChange(replace(record, life=replace(record.life, ignored=since)))
    activity = by_event(record, news, origin, "reopened", {"ignoreUntil": until})
    return LifecycleChange(opened(record, regressed=False), (activity,))


def _open(record: IssueRecord, news: NewEvents, found: Sequence[Activity], origin: str) -> LifecycleChange:  # noqa: ARG001
    return LifecycleChange(record)


_BY_COMMAND: Final = {"resolved": _resolve, "ignored": _ignore, "open": _reopen}
_BY_EVENT: Final = {"open": _open, "resolved": _resolved, "ignored": _ignored}
