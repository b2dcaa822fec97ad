"""Learns from a project's stored events what `grouping.learning` finds, and records it in the project before grouping uses it.

Every few minutes the issues whose events have doubled are sampled. Before a fact is recorded, each issue that it concerns gets the
fingerprint that most of its events will have, by the command that people merge with; issues that will have the same one are joined. So an
issue goes on, and only new events move. Doing it twice does nothing, and what was begun is completed the next time.
"""

import asyncio
import logging
import time
from collections import Counter as Counts
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter

from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard.alike_issues import read_event
from grouping import learning
from grouping.fingerprint import CURRENT_VERSION, GroupingEvent, Mechanism, grouped, mechanism_of
from grouping.fingerprint.key import hash_parts
from grouping.fingerprint.learnt import Slots
from grouping.learning import SeenFrame, SeenMessage, message_of, seen_in
from grouping.regrouping import Gathering, Known, RegroupPlan, plan
from grouping.rules import CompiledRules, compile_rules
from schemas.changes import GROUPING
from schemas.errors import ChangesUnavailable, ProjectsUnavailable
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Command
from schemas.projects import LearntFact, Project
from schemas.times import iso
from storage.answers import Sample
from storage.client import ClickHouseError
from storage.errors import ReadError
from storage.reader.event_calls import SampleEvents
from storage.reader.grouped_issues import GroupedIssue, ListGroupedIssues
from storage.reader.issue_calls import FindIssues
from storage.reader.reader import Reader

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 300.0
LEAST_EVENTS: Final = 20
"""Events of an issue that is sampled."""
SAMPLE: Final = 100
"""Events of one sample."""
MOST_CONCERNED: Final = 200
"""Issues that a fact may concern: what concerns more is for a user to decide, by a rule."""
_SAMPLED_AT_ONCE: Final = 40
_PROJECTS: Final = 50
_SEEN: Final = 20_000


class _Seen:
    """What a process has seen of a project, by the mechanism with this key."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.sampled: dict[int, int] = {}
        """Events that an issue had when it was sampled."""
        self.frames: deque[SeenFrame] = deque(maxlen=_SEEN)
        self.messages: deque[SeenMessage] = deque(maxlen=_SEEN)


class ProjectLearning:
    """Learns all projects whose version of the fingerprint does. `run` is its task."""

    def __init__(
        self, projects: ProjectStore, reader: Reader, commands: Commands, registry: CollectorRegistry
    ) -> None:
        self._projects = projects
        self._reader = reader
        self._commands = commands
        self._seen: OrderedDict[int, _Seen] = OrderedDict()
        self._learnt = Counter(
            "svc_dashboard_learnt_facts", "Facts that grouping has learnt of projects", registry=registry
        )

    async def run(self) -> None:
        """Learn until cancelled."""
        await self._projects.until_loaded()
        while True:
            for project in self._projects.all():
                await self.look(project.number)
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self, number: int) -> None:
        """Look at a project's issues once, and record what they show; leaves it for the next time where servers don't answer."""
        try:
            await self._look(number)
        except (ReadError, ClickHouseError, ChangesUnavailable, ProjectsUnavailable) as error:
            log.warning("project %d is not learnt from yet: %s", number, error)

    async def _look(self, number: int) -> None:
        project = self._projects.get(number)
        under_way = project is not None and project.regrouping is not None and not project.regrouping.done
        if project is None or under_way or project.grouping_version != CURRENT_VERSION:
            return
        if len(project.learnt) >= learning.MAX_FACTS:
            return
        mechanism, rules = mechanism_of(project), compile_rules(project.grouping_rules)
        issues = await self._reader.read(ListGroupedIssues(number, mechanism.version))
        seen = self._of_project(number, mechanism)
        for one in _due(issues, seen):
            events = await self._events(number, one.issue, rules, mechanism)
            found = await asyncio.to_thread(_seen_in, events, mechanism)
            seen.frames.extend(frame for frame, _ in found if frame is not None)
            seen.messages.extend(message for _, message in found if message is not None)
            seen.sampled[one.issue] = one.events
        facts = await asyncio.to_thread(_facts, issues, seen)
        known = {fact.name for fact in project.learnt}
        for fact in facts:
            # Once one is recorded, the others are of another mechanism.
            if fact.name not in known and await self._learn(project, fact, issues, rules):
                return

    def _of_project(self, number: int, mechanism: Mechanism) -> _Seen:
        seen = self._seen.get(number)
        if seen is None or seen.key != mechanism.key:
            seen = self._seen[number] = _Seen(mechanism.key)
        self._seen.move_to_end(number)
        if len(self._seen) > _PROJECTS:
            self._seen.popitem(last=False)
        return seen

    async def _events(
        self, number: int, issue: int, rules: CompiledRules, mechanism: Mechanism
    ) -> list[GroupingEvent]:
        """An issue's newest events, without those that a rule, a client or another version has grouped."""
        samples = await self._reader.read(SampleEvents(number, issue=hex64(issue), limit=SAMPLE))
        return await asyncio.to_thread(_read, samples, rules, mechanism)

    async def _learn(
        self, project: Project, fact: LearntFact, issues: Sequence[GroupedIssue], rules: CompiledRules
    ) -> bool:
        """Let the issues that a fact concerns go on by their new fingerprints, then record it; whether it could be."""
        concerned = [one for one in issues if _concerns(fact, one)]
        if not concerned or len(concerned) > MOST_CONCERNED:
            return False
        number, now = project.number, mechanism_of(project)
        then = mechanism_of(replace(project, learnt=(*project.learnt, fact)))
        counts = Counts[tuple[int, int]]()
        for one in concerned:
            if fact.kind == "varies":
                counts[one.whole, _varied_fingerprint(fact, one)] += one.events
                continue
            if one.whole != one.issue:
                continue
            events = await self._events(number, one.issue, rules, now)
            for fingerprint in await asyncio.to_thread(_fingerprints, events, then):
                # In hundredths, for a sample stands for all of the issue's events.
                counts[one.issue, fingerprint] += 100 * one.events // len(events)
        planned = plan(number, counts, await self._known(number, counts, issues))
        discarded = _discarded(project, planned, concerned)
        if discarded is None or not await self._merge(number, planned.gatherings):
            return False

        def edit(old: Project) -> Project:
            facts = learning.added(old.learnt, [fact], time.time_ns() // 1_000_000)
            return replace(old, learnt=facts, discarded=tuple(dict.fromkeys((*old.discarded, *discarded))))

        if await self._projects.edit(number, edit) is None:
            return False
        self._learnt.inc()
        log.info("project %d: %s %s, of %d issues", number, fact.kind, fact.text, len(concerned))
        return True

    async def _known(
        self, number: int, counts: Counts[tuple[int, int]], issues: Iterable[GroupedIssue]
    ) -> Known:
        known = Known.of((one.issue, one.fingerprints) for one in issues if one.whole == one.issue)
        others = {fingerprint for _, fingerprint in counts if fingerprint not in known.issue_of}
        found = await self._reader.read(FindIssues(number, [hex64(one) for one in others]))
        return Known(
            {**known.issue_of, **{int(name, 16): int(issue, 16) for name, issue in found.items()}},
            known.sizes,
        )

    async def _merge(self, number: int, gatherings: Iterable[Gathering]) -> bool:
        """Whether all could be merged; another merge may be under way."""
        for one in gatherings:
            data = {
                "issues": [hex64(issue) for issue in one.issues],
                "fingerprints": [hex64(fingerprint) for fingerprint in one.fingerprints],
            }
            named = {hex64(issue_id(number, fingerprint)) for fingerprint in one.fingerprints}
            command = Command(
                id=f"learn-{uuid7()}",
                issue=hex64(one.issue),
                project_id=str(number),
                kind="merge",
                by=GROUPING,
                at=iso(time.time_ns() // 1_000_000),
                data=data,
            )
            record = (await self._commands.apply([command]))[command.issue]
            if not {*data["issues"], *named} <= {record.id, *record.life.members}:
                return False
        return True


def _due(issues: Iterable[GroupedIssue], seen: _Seen) -> list[GroupedIssue]:
    """The issues with many events that have doubled since they were sampled."""
    wholes = [one for one in issues if one.whole == one.issue]
    due = [one for one in wholes if one.events >= max(LEAST_EVENTS, 2 * seen.sampled.get(one.issue, 0))]
    return due[:_SAMPLED_AT_ONCE]


def _read(samples: Iterable[Sample], rules: CompiledRules, mechanism: Mechanism) -> list[GroupingEvent]:
    found = []
    for sample in samples:
        event = read_event(bytes(sample.event), rules)
        if event is not None and grouped(event, None, version=mechanism).hex == sample.fingerprint:
            found.append(event)
    return found


def _seen_in(
    events: Iterable[GroupingEvent], mechanism: Mechanism
) -> list[tuple[SeenFrame | None, SeenMessage | None]]:
    return [seen_in(event, mechanism) for event in events]


def _fingerprints(events: Iterable[GroupingEvent], mechanism: Mechanism) -> list[int]:
    return [grouped(event, None, version=mechanism).hash or 1 for event in events]


def _facts(issues: Iterable[GroupedIssue], seen: _Seen) -> list[LearntFact]:
    messages = (message_of(one.parts) for one in issues if is_whole(one))
    return [
        *learning.varying(one for one in messages if one is not None),
        *learning.telling(seen.messages),
        *learning.helpers(seen.frames),
    ]


def is_whole(one: GroupedIssue) -> bool:
    """Whether the parts are stored as they were hashed: long ones are cut off."""
    return hash_parts(CURRENT_VERSION, tuple(one.parts)) in one.fingerprints


def _concerns(fact: LearntFact, one: GroupedIssue) -> bool:
    if fact.kind == "helper":
        return any(part.endswith(f"frame {fact.text}") for part in one.parts)
    message = message_of(one.parts)
    if message is None:
        return False
    if fact.kind == "telling":
        return message.template == fact.text
    return is_whole(one) and Slots([fact]).varied(message.template) == fact.text


def _varied_fingerprint(fact: LearntFact, one: GroupedIssue) -> int:
    """The fingerprint of an issue's events without the word that varies."""
    message = message_of(one.parts)
    template = message.template if message is not None else ""
    parts = tuple(
        part.removesuffix(template) + fact.text if part.endswith(f"message {template}") else part
        for part in one.parts
    )
    return hash_parts(CURRENT_VERSION, parts) or 1


def _discarded(project: Project, planned: RegroupPlan, concerned: Iterable[GroupedIssue]) -> list[str] | None:
    """The new fingerprints of issues whose events a user drops; None where they would be joined with others."""
    dropped = {int(fingerprint, 16) for fingerprint in project.discarded}
    of_user = {one.whole for one in concerned if dropped & set(one.fingerprints)}
    for one in planned.gatherings:
        if len({issue in of_user for issue in (one.issue, *one.issues)}) > 1:
            return None
    return [hex64(fingerprint) for fingerprint, issue in planned.issue_of.items() if issue in of_user]
