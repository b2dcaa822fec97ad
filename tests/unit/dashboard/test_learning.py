"""A project's issues are sampled, what they show is recorded, and each goes on by its new fingerprint first."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard import learning
from dashboard.learning import LEAST_EVENTS, ProjectLearning
from grouping.fingerprint import GroupingEvent, fingerprint, mechanism_of
from grouping.learning import CALLERS, MAX_FACTS, VARIOUS
from schemas.changes import GROUPING
from schemas.errors import ChangePending, ChangesUnavailable, ProjectsUnavailable
from schemas.ids import hex64, issue_id
from schemas.issues import Command, IssueRecord
from schemas.life import Life
from schemas.merges import Figures, Member
from schemas.projects import LearntFact, Project, Regrouping
from storage.answers import Sample
from storage.errors import StorageUnavailable
from storage.reader.event_calls import SampleEvents
from storage.reader.grouped_issues import GroupedIssue, ListGroupedIssues
from storage.reader.issue_calls import FindIssues
from storage.reader.reader import Reader
from tests.unit.grouping.test_learning import WORDS, event, unlike

PROJECT = 7


class World:
    """ClickHouse's issues with their events, the project's record, and the commands that are applied."""

    def __init__(self, **fields: Any) -> None:
        self.project = Project("7", "p", "2026-01-01T00:00:00Z", grouping_version="v2", **fields)
        self.events: dict[int, list[GroupingEvent]] = {}
        self.wholes: dict[int, int] = {}
        self.merged: dict[int, list[int]] = {}
        self.sampled: list[str] = []
        self.commands: list[Command] = []
        self.refuses = False
        self.is_late = False
        self.failure: Exception | None = None

    @property
    def learning(self) -> ProjectLearning:
        """A process that has seen nothing yet."""
        projects, reader, commands = cast(ProjectStore, self), cast(Reader, self), cast(Commands, self)
        return ProjectLearning(projects, reader, commands, CollectorRegistry())

    def store(self, *events: GroupingEvent, rule: str = "") -> None:
        """Store events where grouping puts them; `rule` is what a rule says instead."""
        for one in events:
            found = fingerprint(one, version=mechanism_of(self.project)).hash
            self.events.setdefault(int.from_bytes(rule.encode()) or found, []).append(one)

    async def read(self, call: object) -> Any:
        if isinstance(call, ListGroupedIssues):
            return [self._issue(found, events) for found, events in self.events.items()]
        if isinstance(call, SampleEvents):
            self.sampled.append(call.issue)
            (found,) = [one for one in self.events if hex64(issue_id(PROJECT, one)) == call.issue]
            return [
                Sample(event=Raw(msgspec.json.encode(one)), issue_id="", fingerprint=hex64(found), sdk="", received_ms=0)
                for one in self.events[found]
            ]  # fmt: skip
        assert isinstance(call, FindIssues)
        return {}

    def _issue(self, found: int, events: list[GroupingEvent]) -> GroupedIssue:
        if self.failure is not None:
            raise self.failure
        parts = fingerprint(events[-1], version=mechanism_of(self.project)).parts
        issue = issue_id(PROJECT, found)
        fingerprints = [found, *self.merged.get(issue, [])]
        return GroupedIssue(issue, self.wholes.get(issue, issue), fingerprints, len(events), list(parts))

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        (command,) = commands
        self.commands.append(command)
        named = [hex64(issue_id(PROJECT, int(one, 16))) for one in command.data["fingerprints"]]
        members = [] if self.refuses else [*command.data["issues"], *named]
        self.wholes |= {int(member, 16): int(command.issue, 16) for member in members}
        new = [int(one, 16) for one in command.data["fingerprints"]]
        self.merged.setdefault(int(command.issue, 16), []).extend(new if members else [])
        if self.is_late:
            raise ChangePending("late")
        record = IssueRecord(
            id=command.issue, project_id="7", fingerprints=(), error_type="", message="", culprit="", first_seen_ms=0,
            last_seen_ms=0, life=Life(members={one: Member("f", command.id, 1, Figures()) for one in members}),
        )  # fmt: skip
        return {command.issue: record}

    def get(self, number: int) -> Project | None:
        return self.project if number == PROJECT else None

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        assert number == PROJECT
        self.project = change(self.project)
        return self.project


def shop(**fields: Any) -> World:
    """A project whose `write` is a helper: most of its events come from one caller."""
    world = World(**fields)
    world.store(*[event("write", "show_cart", "out of space")] * LEAST_EVENTS)
    world.store(*[event("write", f"show_{WORDS[n]}", text) for n, text in enumerate(unlike(CALLERS))])
    return world


def named(count: int = VARIOUS, **fields: Any) -> World:
    """A project with an issue for each customer."""
    world = World(**fields)
    world.store(*[event("", "", f"no such customer {name} in store") for name in WORDS[:count]])
    return world


async def test_an_issue_goes_on_by_what_most_of_its_events_get_and_then_the_helper_is_recorded() -> None:
    world = shop()
    (before,) = world.events
    await world.learning.look(PROJECT)
    (fact,) = world.project.learnt
    assert (fact.kind, fact.text, fact.callers) == ("helper", "write in shop/orm.py", CALLERS + 1)
    assert fact.learnt_at > 0
    often = fingerprint(event("write", "show_cart", "out of space"), version=mechanism_of(world.project))
    (command,) = world.commands
    assert (command.issue, command.kind, command.by) == (hex64(issue_id(PROJECT, before)), "merge", GROUPING)
    assert command.data == {"issues": [], "fingerprints": [often.hex]}


async def test_issues_that_differ_in_a_word_join_and_then_it_is_recorded() -> None:
    world = named()
    await world.learning.look(PROJECT)
    assert [one.text for one in world.project.learnt] == ["no such customer <*> in store"]
    (command,) = world.commands
    alike = fingerprint(event("", "", "no such customer x in store"), version=mechanism_of(world.project))
    assert command.data["fingerprints"] == [alike.hex]
    assert {command.issue, *command.data["issues"]} == {hex64(issue_id(PROJECT, one)) for one in world.events}


async def test_what_is_recorded_is_not_learnt_again() -> None:
    world = named()
    process = world.learning
    await process.look(PROJECT)
    known = world.project
    await process.look(PROJECT)
    await world.learning.look(PROJECT)
    assert world.project == known
    assert len(world.commands) == 1


async def test_an_issue_is_sampled_again_once_its_events_have_doubled() -> None:
    world = World()
    process = world.learning
    one = event("write", "show_cart", "out of space")
    for total in (LEAST_EVENTS - 1, LEAST_EVENTS, 2 * LEAST_EVENTS - 1, 2 * LEAST_EVENTS):
        world.store(*[one] * (total - len(world.events.get(fingerprint(one).hash, []))))
        await process.look(PROJECT)
    assert len(world.sampled) == 2


@pytest.mark.parametrize("world", [named(), shop()], ids=["varies", "helper"])
async def test_a_merge_that_was_done_though_no_answer_came_is_completed_by_whoever_looks_next(
    world: World,
) -> None:
    world.is_late = True
    before = world.project
    await world.learning.look(PROJECT)
    assert world.project == before
    world.is_late = False
    await world.learning.look(PROJECT)
    assert world.project.learnt
    assert len(world.commands) == 1


async def test_nothing_is_recorded_while_a_merge_is_refused() -> None:
    world = named()
    world.refuses = True
    await world.learning.look(PROJECT)
    assert world.commands
    assert world.project.learnt == ()
    world.refuses = False
    await world.learning.look(PROJECT)
    assert world.project.learnt


@pytest.mark.parametrize(
    "world",
    [
        named(VARIOUS - 1),
        shop(regrouping=Regrouping("r", "v1", "v2", 0)),
        named(learnt=(LearntFact("varies", "no such customer <*> in store", 3, overruled=True),)),
    ],
    ids=["little seen", "regrouping", "overruled"],
)
async def test_nothing_is_learnt(world: World) -> None:
    known = world.project
    await world.learning.look(PROJECT)
    await world.learning.look(PROJECT + 1)
    assert (world.commands, world.project) == ([], known)


async def test_projects_of_version_1_are_not_looked_at() -> None:
    world = shop()
    world.project = replace(world.project, grouping_version="v1")
    await world.learning.look(PROJECT)
    assert (world.sampled, world.commands, world.project.learnt) == ([], [], ())


async def test_events_that_a_rule_has_grouped_show_nothing() -> None:
    world = World()
    world.store(*[event("write", "show_cart", "out of space")] * LEAST_EVENTS, rule="payments")
    world.store(
        *[event("write", f"show_{WORDS[n]}", text) for n, text in enumerate(unlike(CALLERS))], rule="payments"
    )
    await world.learning.look(PROJECT)
    assert world.sampled
    assert world.project.learnt == ()


async def test_what_concerns_very_many_issues_is_left_to_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_CONCERNED", VARIOUS - 1)
    world = named()
    await world.learning.look(PROJECT)
    assert (world.commands, world.project.learnt) == ([], ())


async def test_a_fact_that_is_left_to_people_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_CONCERNED", VARIOUS)
    world = named(VARIOUS + 1)
    world.store(*[event("", "", f"the table {name} was not found") for name in WORDS[:VARIOUS]])
    await world.learning.look(PROJECT)
    assert [one.text for one in world.project.learnt] == ["the table <*> was not found"]


async def test_a_project_with_all_facts_that_it_may_have_is_left_as_it_is() -> None:
    world = named(learnt=tuple(LearntFact("helper", f"f{n}") for n in range(MAX_FACTS)))
    known = world.project
    await world.learning.look(PROJECT)
    assert (world.commands, world.project) == ([], known)


async def test_what_a_user_drops_is_dropped_by_its_new_fingerprint_too() -> None:
    world = shop()
    world.project = replace(world.project, discarded=tuple(hex64(one) for one in world.events))
    await world.learning.look(PROJECT)
    often = fingerprint(event("write", "show_cart", "out of space"), version=mechanism_of(world.project))
    assert world.project.learnt
    assert often.hex in world.project.discarded


async def test_issues_that_a_user_drops_do_not_join_others() -> None:
    world = named()
    world.project = replace(world.project, discarded=(hex64(next(iter(world.events))),))
    await world.learning.look(PROJECT)
    assert (world.commands, world.project.learnt) == ([], ())


@pytest.mark.parametrize(
    "failure", [StorageUnavailable("down"), ChangesUnavailable("x"), ProjectsUnavailable("x")]
)
async def test_where_servers_do_not_answer_it_is_left_for_the_next_time(failure: Exception) -> None:
    world = named()
    world.failure = failure
    process = world.learning
    await process.look(PROJECT)
    assert world.project.learnt == ()
    world.failure = None
    await process.look(PROJECT)
    assert world.project.learnt
