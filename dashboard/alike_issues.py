"""Joins new issues with those that they surely are (`grouping.alike`), by the command that people merge with.

An issue is compared once, when its activity says that it was created: what somebody unmerges stays apart. Each dashboard does the same,
beginning some minutes back. A command is named after both issues, and an issue applies it once, so that doing it twice does nothing.
"""

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Raw
from prometheus_client import CollectorRegistry, Counter

from broker.client import TopicFollower
from control.issue_commands import Commands
from control.project_store import ProjectStore
from grouping.alike import SURE, Match, Neighbours, Trace, trace_of
from grouping.fingerprint import CURRENT_VERSION, GroupingEvent
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.rules import CompiledRules, compile_rules, outcome_of
from query.event_view import from_json
from schemas.changes import GROUPING
from schemas.errors import ChangesUnavailable
from schemas.ids import hex64
from schemas.issues import Command, decode_activity
from schemas.settings import KafkaSettings
from schemas.times import iso
from schemas.topics import Topic
from storage.client import ClickHouseError
from storage.errors import ReadError
from storage.reader.newest_events import ListNewestEvents
from storage.reader.reader import Reader

log = logging.getLogger(__name__)

BACK_MS: Final = 10 * 60_000
"""How far back a process begins that starts."""
_WAITING: Final = 10_000
"""New issues that wait at most; the oldest are left alone."""
_PROJECTS: Final = 50
_LOOKS: Final = 120
_PAUSE_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 5.0
_TRIES: Final = 3
_decode = msgspec.json.Decoder(GroupingEvent).decode


class AlikeIssues:
    """Follows new issues, and joins those that are surely one. `run` is its task."""

    def __init__(
        self,
        settings: KafkaSettings,
        projects: ProjectStore,
        reader: Reader,
        commands: Commands,
        registry: CollectorRegistry,
    ) -> None:
        begin = time.time_ns() // 1_000_000 - BACK_MS
        self._follower = TopicFollower(settings, Topic.ISSUE_ACTIVITY, self._see, since_ms=begin)
        self._projects = projects
        self._reader = reader
        self._commands = commands
        self._new: deque[tuple[int, int]] = deque(maxlen=_WAITING)
        self._arrived = asyncio.Event()
        self._neighbours: OrderedDict[int, Neighbours] = OrderedDict()
        self._joined = Counter(
            "svc_dashboard_joined_issues",
            "New issues that were merged because they are surely another one",
            registry=registry,
        )

    async def run(self) -> None:
        """Follow and join until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._join_all())

    def _see(self, _: bytes, value: bytes | None) -> None:
        """Note a new issue. Raises msgspec.DecodeError."""
        activity = decode_activity(value or b"null")
        if activity.kind == "created":
            self._new.append((int(activity.project_id), int(activity.issue, 16)))
            self._arrived.set()

    async def _join_all(self) -> None:
        await self._projects.until_loaded()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            by_project: defaultdict[int, list[int]] = defaultdict(list)
            while self._new:
                project, issue = self._new.popleft()
                by_project[project].append(issue)
            for project, issues in by_project.items():
                await self.compare(project, issues)

    async def compare(self, project: int, issues: Sequence[int]) -> None:
        """Compare a project's new issues with its others, and join them; gives up where servers don't answer for long."""
        for _ in range(_TRIES):
            try:
                await self._join(project, issues)
            except (ReadError, ClickHouseError, ChangesUnavailable) as error:
                log.warning("new issues of project %d are not compared yet: %s", project, error)
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    async def _join(self, number: int, issues: Sequence[int]) -> None:
        """Raises ReadError, ClickHouseError and ChangesUnavailable."""
        project = self._projects.get(number)
        if project is None or project.grouping_version != CURRENT_VERSION:
            return
        neighbours, rules = self._of_project(number), compile_rules(project.grouping_rules)
        waiting = [issue for issue in dict.fromkeys(issues) if issue not in neighbours]
        for _ in range(_LOOKS):
            call = ListNewestEvents(number, CURRENT_VERSION, list(waiting), neighbours.issues)
            rows = await self._reader.read(call)
            found = {one.issue: one.event for one in rows if one.issue not in neighbours}
            traces = await asyncio.to_thread(_traces, found.items(), rules)
            neighbours.wholes.update((one.issue, one.whole) for one in rows)
            for issue in found.keys() - set(waiting):
                neighbours.add(issue, traces[issue])
            for issue in [issue for issue in waiting if issue in found]:
                trace = traces[issue]
                match = None if trace is None else neighbours.nearest(trace)
                if (
                    match is not None
                    and match.likeness >= SURE
                    and match.issue != neighbours.wholes.get(issue)
                ):
                    await self._merge(number, issue, match)
                    neighbours.wholes[issue] = match.issue
                neighbours.add(issue, trace)
                waiting.remove(issue)
            if not waiting:
                return
            # What was accepted is stored within a second or two, later where the writer is behind.
            await asyncio.sleep(_PAUSE_SECONDS)

    def _of_project(self, number: int) -> Neighbours:
        neighbours = self._neighbours.setdefault(number, Neighbours())
        self._neighbours.move_to_end(number)
        if len(self._neighbours) > _PROJECTS:
            self._neighbours.popitem(last=False)
        return neighbours

    async def _merge(self, project: int, issue: int, match: Match) -> None:
        into, joining = hex64(match.issue), hex64(issue)
        for attempt in range(_TRIES):
            command = Command(
                id=f"alike-{joining}-{into}-{attempt}",
                issue=into,
                project_id=str(project),
                kind="merge",
                by=GROUPING,
                at=iso(time.time_ns() // 1_000_000),
                data={"issues": [joining]},
            )
            record = (await self._commands.apply([command]))[into]
            if joining in record.life.members:
                self._joined.inc()
                log.info("issue %s is %s, alike by %.2f", joining, into, match.likeness)
                return


def _traces(events: Iterable[tuple[int, Raw | None]], rules: CompiledRules) -> dict[int, Trace | None]:
    return {issue: None if sent is None else read_trace(bytes(sent), rules) for issue, sent in events}


def read_trace(sent: bytes, rules: CompiledRules, version: str = CURRENT_VERSION) -> Trace | None:
    """The trace of a stored event, with the frames that its project's rules mark; None for what can't be compared."""
    event = read_event(sent, rules)
    return None if event is None else trace_of(event, version)


def read_event(sent: bytes, rules: CompiledRules) -> GroupingEvent | None:
    """A stored event as grouping reads it, with the frames that its project's rules mark; None for what can't be read."""
    try:
        event = _decode(sent)
    except (msgspec.DecodeError, RecursionError):
        return None
    if rules:
        answers = rules.ask(view := from_json(sent, "", 0), event)
        event = apply_in_app_rules(event, outcome_of(answers.fitting, lambda: view).in_app_rules)
    return event
