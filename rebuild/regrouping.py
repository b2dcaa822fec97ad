"""Groups a project's events by another version of the fingerprint, and back again.

Issues and their counts stay: what the new version puts together is merged (`grouping.regrouping`), and the new fingerprint of what goes on
is merged into its issue before it has an event. Then the project's record names the new version. Each step is recorded in the logs, and
what is left of it follows from them: a run that was killed is finished by the next one.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from control.issue_commands import Commands
from control.operator_tools import OperatorTools
from control.project_store import ProjectStore
from grouping.regrouping import Gathering, Known, RegroupPlan, plan
from processors.grouper.fingerprinter import Fingerprinter
from schemas.changes import CommandKind, MergeData, UnmergeData
from schemas.chunks import ChunkEvent
from schemas.errors import BadPayload, ChangePending, RegroupRefused, Unreadable
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Command, IssueRecord
from schemas.projects import Project, ProjectRegistry, Regrouping, encode_project
from schemas.times import iso
from storage.repair import regroup_queries as queries
from storage.repair.regroup_queries import PresentIssue

_AT_ONCE: Final = 50
"""Issues that are changed by one connection."""
_ANSWER_SECONDS: Final = 30.0
_TRIES: Final = 3
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unreadable, BadPayload)


class IssueChange(Struct, frozen=True, rename="camel"):
    """Events whose like change from `issue` to `into`; `isNew` for an issue that opens with the next one."""

    issue: str
    title: str
    events: int
    into: str
    is_new: bool = False


class RegroupReport(Struct, frozen=True, rename="camel", kw_only=True):
    """What changes, or has changed: `joins` are whole issues, of which `events` count all; `splits` are parts, of which they count the stored ones.

    Of the stored `events`, `unreadable` could not be read, and rules would drop `dropped` ones.
    """

    project_id: str
    before: str
    after: str
    events: int
    unreadable: int
    dropped: int
    issues: int
    joins: list[IssueChange]
    splits: list[IssueChange]
    is_dry: bool = False


class _Sums(Struct):
    """What the stored events of a project say about another version."""

    counts: Counter[tuple[int, int]]
    discarded: dict[int, Counter[int]]
    """New fingerprints of events whose fingerprint is dropped now."""
    unreadable: int = 0
    dropped: int = 0

    @property
    def newly_discarded(self) -> list[str]:
        return [hex64(found.most_common(1)[0][0]) for found in self.discarded.values()]


def preview(tools: OperatorTools, project: Project, version: str) -> RegroupReport:
    """What `regroup` would change. Raises NotSettled, KafkaError and ClickHouseError."""
    tools.settle()
    run = Regrouping("", project.grouping_version, version, _now())
    issues = _issues(tools, project)
    sums = _sums(tools, project, version, issues, run.until_ms)
    return _report(project, run, issues, sums, _planned(project, sums, issues), is_dry=True)


def regroup(tools: OperatorTools, project: Project, version: str) -> RegroupReport:
    """Group by a version from now on, or finish a change to it. Raises as `preview`, RegroupRefused, ChangesUnavailable and ProjectsUnavailable."""
    run = project.regrouping
    if run is None or run.done:
        run = Regrouping(str(uuid7()), project.grouping_version, version, _now())
        project = _edit(tools, project, lambda known: replace(known, regrouping=run))
    elif run.undoes or run.after != version:
        raise RegroupRefused(
            f"a change to {run.after} is under way: finish it with --{'undo' if run.undoes else f'version {run.after}'}"
        )
    tools.settle()
    issues = _issues(tools, project)
    sums = _sums(tools, project, version, issues, run.until_ms)
    planned = _planned(project, sums, issues)
    report = _report(project, run, issues, sums, planned)
    if project.grouping_version != version:
        _apply(tools, project, run, planned)
        tools.say(f"new events are grouped by {version}")
        project = _edit(tools, project, lambda known: _switched(known, version, sums.newly_discarded))
    _join_later(tools, project, run)
    _edit(tools, project, _finished)
    return report


def undo(tools: OperatorTools, project: Project) -> RegroupReport:
    """Group by the version before the last change, and take apart what it joined; or finish that. Raises as `regroup`."""
    last = project.regrouping
    if last is None or (last.undoes and last.done):
        raise RegroupRefused("there is no change of the grouping to undo")
    if not last.undoes:
        run = Regrouping(str(uuid7()), last.after, last.before, last.until_ms, undoes=last.id)
        project = _edit(
            tools, project, lambda known: replace(known, regrouping=run, grouping_version=run.after)
        )
    else:
        run = last
    tools.say(f"new events are grouped by {run.after}")
    tools.settle()
    _take_apart(tools, project, run)
    tools.settle()
    issues = _issues(tools, project)
    sums = _sums(tools, project, run.after, issues, _now())
    planned = _planned(project, sums, issues)
    report = _report(project, run, issues, sums, planned)
    _apply(tools, project, run, planned)
    _edit(tools, project, _finished)
    return report


def _join_later(tools: OperatorTools, project: Project, run: Regrouping) -> None:
    """Join issues that opened while the change was made: by the old version until each worker knew of it, and by the new one."""
    tools.settle()
    earlier = _earlier(tools, project, run)
    issues = _issues(tools, project)
    new = {one.issue for one in issues if earlier.isdisjoint(one.fingerprints)}
    sums = _sums(tools, project, run.after, issues, _now(), after_ms=run.until_ms)
    sums.counts = Counter({key: count for key, count in sums.counts.items() if key[0] in new})
    _apply(tools, project, run, _planned(project, sums, issues))


def _take_apart(tools: OperatorTools, project: Project, run: Regrouping) -> None:
    """Restore the issues that an earlier change joined, each with what was merged into it before."""
    server, number = tools.servers[0].whole, project.number
    earlier = _earlier(tools, project, run)
    merges = [
        merge
        for merge in queries.merged_by(server, number, _command(run.undoes))
        if merge.fingerprints[0] in earlier
    ]
    known = _known(_issues(tools, project))
    leaving: defaultdict[int, set[int]] = defaultdict(set)
    for merge in merges:
        for fingerprint in merge.fingerprints:
            issue = known.issue_of.get(fingerprint)
            if issue is not None and issue not in {
                issue_id(number, fingerprint),
                issue_id(number, merge.fingerprints[0]),
            }:
                leaving[issue].add(fingerprint)
    _send(
        tools,
        project,
        run,
        [
            (issue, "unmerge", UnmergeData(tuple(hex64(one) for one in sorted(ones))))
            for issue, ones in leaving.items()
        ],
        lambda record, data: not {*data["fingerprints"]} & {*record.fingerprints[1:]},
    )
    together = [
        Gathering(issue_id(number, first), tuple(issue_id(number, one) for one in others), ())
        for first, *others in (merge.fingerprints for merge in merges)
        if others
    ]
    _merge(tools, project, run, together)


def _earlier(tools: OperatorTools, project: Project, run: Regrouping) -> set[int]:
    """The fingerprints that had events before a change."""
    found = [
        queries.earlier_fingerprints(server.own, project.number, run.until_ms) for server in tools.servers
    ]
    return set[int]().union(*found)


def _planned(project: Project, sums: _Sums, issues: Sequence[PresentIssue]) -> RegroupPlan:
    return plan(project.number, sums.counts, _known(issues))


def _known(issues: Iterable[PresentIssue]) -> Known:
    return Known.of((one.issue, one.fingerprints) for one in issues)


def _issues(tools: OperatorTools, project: Project) -> list[PresentIssue]:
    return queries.issues(tools.servers[0].whole, project.number)


def _sums(
    tools: OperatorTools,
    project: Project,
    version: str,
    issues: Sequence[PresentIssue],
    until_ms: int,
    after_ms: int = 0,
) -> _Sums:
    """Group the stored events as the grouper would; `after_ms` and `until_ms` are times of receipt."""
    registry = ProjectRegistry()
    registry.apply(project.id.encode(), encode_project(replace(project, grouping_version=version)))
    fingerprinter, known = Fingerprinter(registry), _known(issues)
    discarded = {int(fingerprint, 16) for fingerprint in project.discarded}
    sums = _Sums(Counter(), defaultdict(Counter))
    tools.say("reading the stored events")
    for server in tools.servers:
        for past in queries.sent_events(server.own, project.number, after_ms, until_ms):
            event = ChunkEvent(project.number, past.id, past.received_ms, past.sdk, past.json)
            try:
                _, found = fingerprinter.group(event)
            except _UNREADABLE:
                sums.unreadable += 1
                continue
            if past.fingerprint in discarded:
                sums.discarded[past.fingerprint][found.grouping.fingerprint] += 1
            if not found.fingerprint:
                sums.dropped += 1
                continue
            issue = known.issue_of.get(past.fingerprint) or issue_id(project.number, past.fingerprint)
            sums.counts[issue, found.fingerprint] += 1
    return sums


def _apply(tools: OperatorTools, project: Project, run: Regrouping, planned: RegroupPlan) -> None:
    if planned.gatherings:
        tools.say(f"merging what belongs together into {len(planned.gatherings):,} issues")
        _merge(tools, project, run, planned.gatherings)


def _merge(tools: OperatorTools, project: Project, run: Regrouping, gatherings: Iterable[Gathering]) -> None:
    number = project.number

    def is_done(record: IssueRecord, data: dict[str, list[str]]) -> bool:
        named = {
            hex64(issue_id(number, int(fingerprint, 16))) for fingerprint in data.get("fingerprints", ())
        }
        return {*data.get("issues", ()), *named} <= {record.id, *record.life.members}

    _send(
        tools,
        project,
        run,
        [
            (
                one.issue,
                "merge",
                MergeData(tuple(map(hex64, one.issues)), tuple(map(hex64, one.fingerprints))),
            )
            for one in gatherings
        ],
        is_done,
    )


def _send(
    tools: OperatorTools,
    project: Project,
    run: Regrouping,
    changes: Sequence[tuple[int, CommandKind, MergeData | UnmergeData]],
    is_done: Callable[[IssueRecord, dict[str, list[str]]], bool],
) -> None:
    """Change issues, and again where another merge was under way. Raises RegroupRefused."""
    waiting = list(_commands(tools, project, run, changes))
    for _ in range(_TRIES):
        left: list[Command] = []
        for first in range(0, len(waiting), _AT_ONCE):
            left += asyncio.run(_unsettled(tools, waiting[first : first + _AT_ONCE], is_done))
        if not left:
            return
        waiting = [replace(command, id=_command(run.id) + str(uuid7())) for command in left]
    raise RegroupRefused(
        f"{len(waiting):,} issues can't be changed now, {waiting[0].issue} among them: run it again"
    )


async def _unsettled(
    tools: OperatorTools,
    commands: Sequence[Command],
    is_done: Callable[[IssueRecord, dict[str, list[str]]], bool],
) -> list[Command]:
    try:
        found = await Commands(tools.settings, _ANSWER_SECONDS).apply(commands)
    except ChangePending:
        return list(commands)
    return [command for command in commands if not is_done(found[command.issue], command.data)]


def _commands(
    tools: OperatorTools,
    project: Project,
    run: Regrouping,
    changes: Iterable[tuple[int, CommandKind, MergeData | UnmergeData]],
) -> Iterator[Command]:
    for issue, kind, data in changes:
        yield Command(
            _command(run.id) + str(uuid7()),
            hex64(issue),
            project.id,
            kind,
            tools.by,
            iso(_now()),
            msgspec.to_builtins(data),
        )


def _command(run: str) -> str:
    """How the ids of a run's commands begin; activities have them in their ids."""
    return f"regroup-{run}-"


def _switched(project: Project, version: str, discarded: Iterable[str]) -> Project:
    """The project with the new version; what it drops, it drops by the new fingerprint too."""
    return replace(
        project, grouping_version=version, discarded=tuple(dict.fromkeys((*project.discarded, *discarded)))
    )


def _finished(project: Project) -> Project:
    run = project.regrouping
    return project if run is None else replace(project, regrouping=replace(run, done=True))


def _edit(tools: OperatorTools, project: Project, change: Callable[[Project], Project]) -> Project:
    async def edit() -> Project | None:
        async with ProjectStore(tools.settings) as store:
            return await store.edit(project.number, change)

    changed = asyncio.run(edit())
    if changed is None:
        raise RegroupRefused("the project was erased")
    return changed


def _report(
    project: Project,
    run: Regrouping,
    issues: Sequence[PresentIssue],
    sums: _Sums,
    planned: RegroupPlan,
    *,
    is_dry: bool = False,
) -> RegroupReport:
    by_issue = {one.issue: one for one in issues}

    def change(issue: int, into: int, events: int, *, is_new: bool = False) -> IssueChange:
        one = by_issue.get(issue)
        title = f"{one.error_type}: {one.message}" if one else ""
        return IssueChange(hex64(issue), title.partition("\n")[0][:200], events, hex64(into), is_new)

    joins = [
        change(issue, into, by_issue[issue].events if issue in by_issue else 0)
        for issue, into in planned.joined.items()
    ]
    splits = [change(one.issue, one.into, one.events, is_new=one.is_new) for one in planned.splits]
    return RegroupReport(
        project_id=project.id,
        before=run.before,
        after=run.after,
        events=sums.counts.total() + sums.unreadable + sums.dropped,
        unreadable=sums.unreadable,
        dropped=sums.dropped,
        issues=len({issue for issue, _ in sums.counts}),
        joins=sorted(joins, key=lambda one: (-one.events, one.issue)),
        splits=sorted(splits, key=lambda one: (-one.events, one.issue)),
        is_dry=is_dry,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
