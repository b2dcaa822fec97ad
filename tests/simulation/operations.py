"""The actions of operators and users while everything runs.

They are the product's own commands, each a process that may be killed like any other.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from broker.consumer_lag import readers
from broker.dead_letters import put_back
from control.erasure import erase_user, find
from control.issue_commands import Commands, is_made
from control.operator_tools import OperatorTools
from grouping.fingerprint.key import hash_parts
from rebuild.tables import LOGS, run_rebuild
from schemas.changes import CommandKind
from schemas.chunks import decode_chunk
from schemas.environment import load
from schemas.errors import ChangesUnavailable, EraseRefused, RebuildRefused
from schemas.issues import Command, IssueRecord, decode_issue
from schemas.projects import GroupingRule, OwnerRule, Project, ProjectRegistry, encode_project
from schemas.settings import KafkaSettings, ProcessorsSettings, WriterSettings
from schemas.topics import Topic, topic_name
from storage.maintain.reconcile import repair_differences as repairing
from storage.maintain.reconcile.reconcile import compare
from storage.shards import open_servers
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_shards import urls_of
from tests.simulation.kafka import Broker, NewRecord
from tests.simulation.world import World

_KAFKA: Final = "k:1"
GROUPS: Final = ("svc-processors", "svc-writer")
AT: Final = "2026-09-21T13:00:00.000Z"
PROJECT: Final = 7
OTHER: Final = 8
"""A project without changes and erasures."""
RELEASES: Final = ("app@1.0.0", "app@1.1.0", "app@1.10.0", "web@7")
TOGETHER: Final = f"{hash_parts(('given one',)):016x}"
"""The fingerprint of the rule that puts all events together."""
USERS: Final = ("", "ann", "bob")
"""The users of events; some events have none."""
OWNERS: Final = (OwnerRule("message:first", "zoe"), OwnerRule("environment:live user:ann", "eve"))
"""Whom new issues are assigned to: some by any of their events, some by what the first one is, most to no one."""
SPOILT: Final = b"no frame"
"""The payload of an unreadable event: it comes again."""
_CHANGE_SECONDS: Final = 5.0
_TRIES: Final = 10
_SETTLE_SECONDS: Final = 5.0
"""For the writer, to store the records that a repair has sent."""


class PlayedSettings(NamedTuple):
    """The settings of the processors and of a writer."""

    processors: ProcessorsSettings
    writer: WriterSettings


@cache
def settings_of(shards: int) -> PlayedSettings:
    """Those of the processors and of a writer, where there are so many ClickHouse servers."""
    environ = {
        "SVC_KAFKA_BOOTSTRAP": _KAFKA,
        "SVC_CLICKHOUSE_SHARDS": ",".join(urls_of(shards)),
        "SVC_CLICKHOUSE_CLUSTER": "events",
    }
    return PlayedSettings(load(ProcessorsSettings, environ), load(WriterSettings, environ))


class Projects:
    """The topic `projects` with two projects, and the registries of the processes, which follow it some time behind."""

    def __init__(self, world: World, broker: Broker, payload_days: int | None) -> None:
        self._world = world
        self._log = broker.topics[topic_name(Topic.PROJECTS, "svc.", {})][0]
        self._registries: list[ProjectRegistry] = []
        self.project, self.other = (
            Project(
                id=str(number),
                name=f"p{number}",
                created_at="2026-01-01T00:00:00.000Z",
                payload_retention_days=payload_days,
                owners=OWNERS,
            )
            for number in (PROJECT, OTHER)
        )
        self.retention: dict[int, set[tuple[int, int]]] = {}
        """The days that were ever those of each project's events and payloads."""
        self.matched: set[str] = set()
        """The messages that a rule has ever matched."""
        self._write(self.other)
        self._write(self.project)

    def of(self, number: int) -> Project:
        """A project by its number."""
        return self.project if number == PROJECT else self.other

    def has_matched(self, message: str) -> bool:
        """Whether a rule has ever matched a message."""
        return not self.matched.isdisjoint({message, "*"})

    def _write(self, project: Project) -> None:
        self.retention.setdefault(project.number, set()).add(project.stored_days)
        self._log.append([NewRecord(0, project.id.encode(), encode_project(project), ())])

    def registry(self) -> ProjectRegistry:
        """The registry of a process that starts."""
        registry = ProjectRegistry()
        registry.apply(self.other.id.encode(), encode_project(self.other))
        self._apply(registry)
        self._registries.append(registry)
        return registry

    def change(self, random: Random) -> None:
        """Change the retention or the rules of grouping."""
        if random.random() < 0.5:
            self.project = replace(self.project, retention_days=random.choice((30, 90, 365)))
        else:
            rule = GroupingRule(
                "together", random.choice(("message:first", "message:*")), fingerprint=("one",)
            )
            self._group_by((rule,) if random.random() < 0.7 else ())
        self._tell()

    def toggle_rule(self) -> None:
        """Put all events together, or no longer."""
        together = GroupingRule("together", "message:*", fingerprint=("one",))
        self._group_by(() if self.project.grouping_rules else (together,))
        self._tell()

    def _group_by(self, rules: tuple[GroupingRule, ...]) -> None:
        self.matched.update(rule.match.removeprefix("message:") for rule in rules)
        self.project = replace(self.project, grouping_rules=rules)

    def _tell(self) -> None:
        self._world.note(
            f"the project changes: {self.project.retention_days} days, {self.project.grouping_rules}"
        )
        self._write(self.project)
        for registry in self._registries:
            self._world.after(self._world.random.uniform(0.0, 2.0), partial(self._apply, registry))

    def _apply(self, registry: ProjectRegistry) -> None:
        registry.apply(self.project.id.encode(), encode_project(self.project))


class Changes:
    """Changes of issues by users; a confirmed one must be applied, and all at most once."""

    def __init__(self, world: World, broker: Broker) -> None:
        self._world = world
        self._logs = broker.topics[topic_name(Topic.ISSUES, "svc.", {})]
        self._decode = cache(decode_issue)
        self.sent: dict[str, Command] = {}
        self.confirmed: dict[str, str] = {}
        """The issue that each confirmed command was applied to: its own, or the one that this was merged into."""

    def issues(self) -> dict[str, IssueRecord]:
        """The newest record of each issue in the topic, as its readers know it: an old owner's may come later."""
        found: dict[str, IssueRecord] = {}
        for log in self._logs:
            for record in log.records:
                if record.value is not None:
                    issue = self._decode(record.value)
                    if issue.id not in found or issue.version >= found[issue.id].version:
                        found[issue.id] = issue
        return found

    def one(self, random: Random, wanted: str = "") -> Callable[[], Any] | None:
        """A user's change of some issue, also of a wanted kind; None while there is none to change."""
        issues = self.issues()
        fit = [
            issue
            for _, issue in sorted(issues.items())
            if (wanted != "unmerge" or issue.life.members)
            and (wanted != "member" or issue.merged_into is not None)
            and (wanted != "merge" or _partners(issue, issues, are_free=True))
        ]
        return self.change(random, random.choice(fit), wanted) if fit else None

    def cross(self, random: Random) -> list[Callable[[], Any]]:
        """Two concurrent merges of issues into each other; none while there are no two issues."""
        issues = self.issues()
        fit = [issue for _, issue in sorted(issues.items()) if _partners(issue, issues, are_free=True)]
        if not fit:
            return []
        left = random.choice(fit)
        right = issues[random.choice(_partners(left, issues, are_free=True))]
        return [
            self._apply(left, "merge", {"issues": [right.id]}),
            self._apply(right, "merge", {"issues": [left.id]}),
        ]

    def change(self, random: Random, issue: IssueRecord, wanted: str) -> Callable[[], Any]:
        """A change of an issue."""
        kind, data = self._change(random, issue, wanted)
        return self._apply(issue, kind, data, waits=wanted != "member")

    def _apply(
        self, issue: IssueRecord, kind: CommandKind, data: dict[str, Any], *, waits: bool = True
    ) -> Callable[[], Any]:
        number = self._number()
        command = Command(number, issue.id, issue.project_id, kind, "user", AT, data)
        self.sent[number] = command

        async def apply() -> None:
            self._world.note(f"{kind} {issue.id}: {data}")
            # One that is refused by now is never confirmed.
            for _ in range(_TRIES):
                with suppress(ChangesUnavailable):
                    commands = Commands(KafkaSettings(kafka_bootstrap=_KAFKA), _CHANGE_SECONDS)
                    if not waits:
                        await commands.send([command])
                    elif is_made((settled := await commands.apply([command]))[issue.id], command):
                        self.confirmed[number] = settled[issue.id].id
                    return
                await asyncio.sleep(0.5)

        return apply

    def _number(self) -> str:
        return f"01a0c450-0000-7000-8000-{len(self.sent):012x}"

    def _change(self, random: Random, issue: IssueRecord, wanted: str) -> tuple[CommandKind, dict[str, Any]]:
        issues, number = self.issues(), self._number()
        others = _partners(issue, issues, are_free=bool(wanted))
        members = [member.fingerprint for member in issue.life.members.values()]
        match wanted or random.choice(("comment", "assign", "status", "merge", "unmerge")):
            case "assign":
                data: dict[str, Any] = {"assignee": number}
            case "status":
                data = {"status": random.choice(("open", "resolved", "ignored"))}
            case "resolve":
                data = {"status": "resolved", "resolvedIn": random.choice((None, "next", *RELEASES))}
            case "limit":
                data = {"status": "ignored", "ignoreUntil": {"events": 2}}
            case "ignore":
                until = random.choice(
                    ({"events": random.randint(1, 3)}, {"users": 1}, {"users": 2}, {"time": AT})
                )
                data = {"status": "ignored", "ignoreUntil": until}
            case "merge" if others:
                data = {"issues": random.sample(others, random.randint(1, min(2, len(others))))}
                # Each third names a fingerprint too that may have no event yet.
                return "merge", data | ({"fingerprints": [TOGETHER]} if len(self.sent) % 3 == 0 else {})
            case "unmerge" if members:
                return "unmerge", {"fingerprints": members[:1]}
            case _:
                return "comment", {"text": number}
        return "update", data


def _partners(issue: IssueRecord, issues: Mapping[str, IssueRecord], *, are_free: bool) -> list[str]:
    """Other issues of its project, with which it can be merged where they are free."""
    if are_free and issue.merged_into is not None:
        return []
    return [
        number
        for number, other in sorted(issues.items())
        if number != issue.id
        and other.project_id == issue.project_id
        and not (are_free and other.merged_into is not None)
    ]


class Erasures:
    """Erasures of users, and the ids that must be gone after them."""

    def __init__(
        self,
        world: World,
        broker: Broker,
        servers: Sequence[Server],
        settings: WriterSettings,
        project: Project,
        of_user: Callable[[str], set[bytes]],
    ) -> None:
        self._world = world
        self._servers = servers
        self._settings = settings
        self._log = broker.topics[topic_name(Topic.EVENTS, "svc.", {})]
        self._project = project
        self._of_user = of_user
        """The ids that were sent of a user."""
        self.erased: set[bytes] = set()
        self._is_busy = False

    def one(self, random: Random) -> Callable[[], None] | None:
        """`svc erase` of some user; it is refused while nothing of this user is stored, and then given again.

        None while it runs: of a project it may run once at a time.
        """
        if self._is_busy:
            return None
        self._is_busy = True
        user = random.choice([user for user in USERS if user])

        def erase() -> None:
            for _ in range(_TRIES):
                with suppress(EraseRefused):
                    self._erase(user)
                    break
                time.sleep(1.0)
            self._is_busy = False

        return erase

    def _erase(self, user: str) -> None:
        wanted = self._accepted(user)
        with open_servers(self._settings) as servers:
            groups = readers(*GROUPS, len(servers))
            tools = OperatorTools(
                self._settings, groups, servers, _SETTLE_SECONDS, "operator", lambda _: None
            )
            number, _ = find(tools, self._project.name)
            report = erase_user(tools, number, user, lambda *_: True)
        self._world.note(f"{user} is erased with {report.events} events")
        self.erased |= wanted

    def _accepted(self, user: str) -> set[bytes]:
        """The records and rows of a user."""
        events = set[tuple[int, bytes]]()
        for record in chain.from_iterable(log.records for log in self._log):
            with suppress(msgspec.DecodeError):
                chunk = decode_chunk(record.value or b"")
                events.update((event.project, event.id) for event in chunk if event.payload != SPOILT)
        for server in self._servers:
            events |= {(row.project, row.id[::-1]) for row in server.tables["events"].rows}
        return self._of_user(user) & {number for project, number in events if project == PROJECT}


def repair(settings: WriterSettings) -> None:
    """`svc reconcile --repair`, after parts were lost."""
    with open_servers(settings) as servers:
        found = compare(servers, repairing.today())
        repairing.repair_differences(
            settings, servers, found, {"outcomes", "issue_activity", "issues"}, _SETTLE_SECONDS
        )


async def rebuild(settings: ProcessorsSettings, tables: Sequence[str], source: str | None) -> None:
    """`svc rebuild` of tables of the processors, which are stopped; of all tables where the command asks for it."""
    try:
        await run_rebuild(settings, tables, source, lambda _: None)
    except RebuildRefused as error:
        if "rebuild `all`" not in str(error):
            raise
        await run_rebuild(settings, LOGS, "clickhouse", lambda _: None)


async def replay_dead_letters(settings: WriterSettings) -> None:
    """`svc dead-letters replay`."""
    await put_back(settings, None)
