"""New issues that are surely one are merged by a command, once, and nothing else is."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest
from msgspec import Raw
from prometheus_client import CollectorRegistry

from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard import alike_issues
from dashboard.alike_issues import AlikeIssues
from schemas.changes import GROUPING
from schemas.errors import ChangePending
from schemas.ids import hex64
from schemas.issues import Command, IssueRecord
from schemas.life import Life
from schemas.merges import Figures, Member
from schemas.projects import GroupingRule, Project
from schemas.settings import KafkaSettings
from storage.errors import StorageUnavailable
from storage.reader.newest_events import IssueEvent, ListNewestEvents
from storage.reader.reader import Reader
from tests.unit.grouping.test_alike import BASE, event

PROJECT = 7
NAMELESS = ("session.js", *BASE[1:])
OTHER = ("onPresence session.js", *BASE[1:])


class Stored:
    """ClickHouse's issues: the newest event of each."""

    def __init__(self) -> None:
        self.events: dict[int, Raw | None] = {}
        self.wholes: dict[int, int] = {}
        self.failures = 0
        self.calls: list[ListNewestEvents] = []

    async def read(self, call: ListNewestEvents) -> list[IssueEvent]:
        self.calls.append(call)
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable("down")
        return [
            IssueEvent(issue, self.wholes.get(issue, issue), None if issue in call.known else event)
            for issue, event in self.events.items()
        ]


class Applied:
    """Commands that are applied at once, but for the first `refused`."""

    def __init__(self) -> None:
        self.made: list[Command] = []
        self.refused = 0
        self.failures = 0

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        (command,) = commands
        if self.failures:
            self.failures -= 1
            raise ChangePending("late")
        self.made.append(command)
        members = {}
        if self.refused:
            self.refused -= 1
        else:
            members = {one: Member("f", command.id, 1, Figures()) for one in command.data["issues"]}
        record = IssueRecord(
            id=command.issue, project_id="7", fingerprints=(), error_type="", message="", culprit="",
            first_seen_ms=0, last_seen_ms=0, life=Life(members=members),
        )  # fmt: skip
        return {command.issue: record}


class Known:
    """The projects."""

    def __init__(self, **fields: Any) -> None:
        self.project = Project("7", "p", "2026-01-01T00:00:00Z", grouping_version="v2", **fields)

    def get(self, number: int) -> Project | None:
        return self.project if number == PROJECT else None


class Joining:
    """What is under test, and what it sees and does."""

    def __init__(self, **fields: Any) -> None:
        self.stored, self.applied = Stored(), Applied()
        self.alike = AlikeIssues(
            KafkaSettings(kafka_bootstrap="k:1"),
            cast(ProjectStore, Known(**fields)),
            cast(Reader, self.stored),
            cast(Commands, self.applied),
            CollectorRegistry(),
        )

    def store(self, issue: int, *frames: str, **more: Any) -> None:
        self.stored.events[issue] = Raw(msgspec.json.encode(event(*frames, **more)))

    @property
    def joined(self) -> list[tuple[str, list[str]]]:
        return [(command.issue, command.data["issues"]) for command in self.applied.made]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PAUSE_SECONDS", "_AGAIN_SECONDS"):
        monkeypatch.setattr(alike_issues, name, 0.0)


async def test_a_new_issue_joins_the_one_that_it_surely_is() -> None:
    joining = Joining()
    for issue, frames in ((1, BASE), (3, NAMELESS)):
        joining.store(issue, *frames)
    await joining.alike.compare(PROJECT, [3])
    assert joining.joined == [(hex64(1), [hex64(3)])]
    (command,) = joining.applied.made
    assert (command.by, command.kind, command.project_id) == (GROUPING, "merge", "7")
    await joining.alike.compare(PROJECT, [3])
    assert len(joining.applied.made) == 1


async def test_an_issue_that_fits_two_others_joins_none_unless_they_are_one() -> None:
    joining = Joining()
    for issue, frames in ((1, BASE), (2, OTHER), (3, NAMELESS)):
        joining.store(issue, *frames)
    await joining.alike.compare(PROJECT, [3])
    assert joining.joined == []
    joining.store(4, *NAMELESS)
    joining.stored.wholes = {2: 1, 3: 1}
    await joining.alike.compare(PROJECT, [4])
    assert joining.joined == [(hex64(1), [hex64(4)])]


async def test_unlike_issues_are_not_merged_through_one_that_fits_both() -> None:
    joining = Joining()
    joining.store(1, *BASE)
    joining.store(2, *NAMELESS)
    await joining.alike.compare(PROJECT, [2])
    assert joining.joined == [(hex64(1), [hex64(2)])]
    joining.stored.wholes = {2: 1}
    joining.store(3, *OTHER)
    await joining.alike.compare(PROJECT, [3])
    assert len(joining.joined) == 1


async def test_new_issues_are_compared_with_each_other_in_the_order_of_their_creation() -> None:
    joining = Joining()
    joining.store(3, *BASE)
    joining.store(2, *NAMELESS)
    await joining.alike.compare(PROJECT, [3, 2])
    assert joining.joined == [(hex64(3), [hex64(2)])]


async def test_issues_that_are_not_new_are_left_as_they_are() -> None:
    joining = Joining()
    joining.store(1, *BASE)
    joining.store(2, *NAMELESS)
    joining.store(3, *OTHER, message="another")
    await joining.alike.compare(PROJECT, [3])
    assert joining.joined == []


async def test_an_issue_that_is_not_stored_yet_is_waited_for() -> None:
    joining = Joining()
    joining.store(1, *BASE)

    async def read(call: ListNewestEvents) -> list[IssueEvent]:
        found = await Stored.read(joining.stored, call)
        joining.store(2, *NAMELESS)
        return found

    joining.stored.read = read  # type: ignore[method-assign]
    await joining.alike.compare(PROJECT, [2])
    assert joining.joined == [(hex64(1), [hex64(2)])]
    assert [call.wanted for call in joining.stored.calls] == [[2], [2]]


async def test_an_issue_that_never_shows_up_is_given_up() -> None:
    joining = Joining()
    await joining.alike.compare(PROJECT, [2])
    assert joining.joined == []


@pytest.mark.parametrize("version", ["v1", "v9"])
async def test_projects_of_another_version_are_left_alone(version: str) -> None:
    joining = Joining()
    known = cast(Known, joining.alike._projects)
    known.project = msgspec.structs.replace(known.project, grouping_version=version)
    joining.store(1, *BASE)
    joining.store(2, *NAMELESS)
    await joining.alike.compare(PROJECT, [2])
    await joining.alike.compare(8, [2])
    assert joining.stored.calls == []


async def test_what_servers_refuse_for_a_moment_is_done_again() -> None:
    joining = Joining()
    joining.store(1, *BASE)
    joining.store(2, *NAMELESS)
    joining.stored.failures = joining.applied.failures = joining.applied.refused = 1
    await joining.alike.compare(PROJECT, [2])
    assert [command.id for command in joining.applied.made] == [
        f"alike-{hex64(2)}-{hex64(1)}-0",
        f"alike-{hex64(2)}-{hex64(1)}-1",
    ]


async def test_frames_that_a_rule_takes_from_the_app_are_not_compared() -> None:
    rule = GroupingRule("vendored", "type:TypeError", not_in_app=("*/session.js",))
    joining = Joining(grouping_rules=(rule,))
    joining.store(1, *BASE)
    joining.store(2, *OTHER)
    await joining.alike.compare(PROJECT, [2])
    assert len(joining.joined) == 1


async def test_events_that_cannot_be_read_are_no_neighbours() -> None:
    joining = Joining()
    joining.stored.events |= {1: None, 2: Raw(b"[]")}
    joining.store(3, *NAMELESS)
    await joining.alike.compare(PROJECT, [3])
    assert joining.joined == []
