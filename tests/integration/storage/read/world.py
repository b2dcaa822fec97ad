"""A project with events of three weeks, and the expected answers of the read calls, computed from a list."""

import json
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from query.evaluate import matches
from query.event_view import EventView, IssueView
from query.parse import parse
from query.tree import Is, IssueState
from schemas.ids import hex64, issue_id, user_hash, uuid7
from schemas.read_api import Sort
from schemas.times import DAY_MS, HOUR_MS, from_ms
from storage.client import Client
from storage.read.query.ranges import resolve_range, trend_unit, trend_window
from storage.tables.packs import packed

NOW_MS = 1_790_003_723_456
FINGERPRINTS = 24
MERGED = (12, 14)
"""The fingerprint of the second belongs to the issue of the first."""
PART = ("MergedError", "what it was", "old in src/old.ts")
"""Type, message and culprit of the issue that was merged."""


class Happened(Struct, frozen=True):
    """An event with its expected grouping and counts."""

    id: uuid.UUID
    fingerprint: int
    payload: bytes
    view: EventView


class World(Struct):
    """All events of a project, and the life of each issue."""

    project: int
    events: list[Happened]
    issues: dict[int, IssueView]
    answers: dict[tuple[str, int, int | None], list[Happened]] = field(default_factory=dict)
    """The result of `found`, cached because many tests ask the same."""

    def issue_of(self, fingerprint: int) -> int:
        """The issue that has the fingerprint's events now."""
        return issue_id(self.project, MERGED[0] if fingerprint == MERGED[1] else fingerprint)

    def found(self, query: str, start: int, end: int | None) -> list[Happened]:
        """The events in range that the query holds for, the newest first."""
        key = (query, start, end)
        if key not in self.answers:
            self.answers[key] = self._find(query, start, end)
        return self.answers[key]

    def _find(self, query: str, start: int, end: int | None) -> list[Happened]:
        tree = parse(query)
        inside = [
            event
            for event in self.events
            if start <= event.view.timestamp and (end is None or event.view.timestamp < end)
        ]
        holding = [event for event in inside if matches(tree, self.with_issue(event), NOW_MS)]
        return sorted(holding, key=lambda event: (event.view.timestamp, event.id.int), reverse=True)

    def with_issue(self, event: Happened) -> EventView:
        """The event with its issue."""
        return replace(event.view, issue=self.issues[self.issue_of(event.fingerprint)])

    def by_issue(self, events: Iterable[Happened]) -> dict[int, list[Happened]]:
        """The events of each issue."""
        found: dict[int, list[Happened]] = defaultdict(list)
        for event in events:
            found[self.issue_of(event.fingerprint)].append(event)
        return found

    def trends(self, query: str, start: int | None, end: int | None) -> dict[str, list[int]]:
        """The trend of each issue by its id."""
        span = resolve_range(start, end, NOW_MS)
        window = trend_window(span, NOW_MS)
        size = HOUR_MS if trend_unit(span, NOW_MS) == "hour" else DAY_MS
        assert window.end is not None
        times = range(window.start, window.end, size)
        found = self.by_issue(self.found(query, window.start, window.end))
        counts = {
            issue: Counter(event.view.timestamp // size * size for event in found.get(issue, []))
            for issue in self.issues
        }
        return {hex64(issue): [counts[issue][at] for at in times] for issue in self.issues}

    def users(self, issue: int, events: Sequence[Happened]) -> int:
        """The users of an issue's events: of all of them the estimate in its record."""
        life = self.issues[issue]
        return life.users if len(events) == life.events else distinct_users(events)

    def order(self, query: str, start: int, end: int | None, sort: Sort) -> list[str]:
        """Ids of the issues of a list."""
        found = self.by_issue(self.found(query, start, end))
        keys = {
            issue: {
                "lastSeen": self.issues[issue].last_seen,
                "firstSeen": self.issues[issue].first_seen,
                "events": len(events),
                "users": self.users(issue, events),
                "priority": (rank(self.issues[issue]), self.users(issue, events), len(events)),
            }[sort]
            for issue, events in found.items()
        }
        return [hex64(issue) for issue in sorted(found, key=lambda i: (keys[i], i), reverse=True)]


def rank(issue: IssueView) -> int:
    """3 for an open issue that escalates, 2 for one that regressed, 1 for a new one."""
    states: tuple[IssueState, ...] = ("new", "regressed", "escalating")
    found = [n for n, state in enumerate(states, 1) if matches(Is((state,)), EventView(issue=issue), NOW_MS)]
    return max(found, default=0) if issue.status == "open" else 0


def distinct_users(events: Iterable[Happened]) -> int:
    """Users that are known."""
    return len({event.view.user for event in events} - {""})


def make(project: int, seed: int = 1, many: int = 700) -> World:
    """Events at every distance from now, some at the very edges of hours and days."""
    chance = random.Random(seed)
    events = [_event(chance, number) for number in range(many)]
    world = World(project, events, {})
    lives = world.by_issue(events)
    for issue, found in lives.items():
        times = [event.view.timestamp for event in found]
        world.issues[issue] = IssueView(
            status=chance.choice(["open", "open", "resolved", "ignored"]),
            regressed=chance.random() < 0.2,
            assignee="ann" if chance.random() < 0.3 else "",
            first_release=min(found, key=lambda event: event.view.timestamp).view.release,
            first_seen=min(times),
            last_seen=max(times),
            events=len(found),
            # An estimate, as the processors make it.
            users=distinct_users(found) + len(found) % 3,
            escalated=NOW_MS - int(2 * DAY_MS * chance.random()) if chance.random() < 0.3 else 0,
        )
    return world


def _event(chance: random.Random, number: int) -> Happened:
    age = int(20 * DAY_MS * chance.random() ** 2)
    unit = chance.choice([1, 1, 1, HOUR_MS, DAY_MS])
    at = (NOW_MS - age) // unit * unit - chance.choice([0, 0, 1])
    fingerprint = int(FINGERPRINTS * chance.random() ** 2)
    tags = {"feature": chance.choice(["checkout", "cart", "search"]), "n": str(number % 50)}
    if chance.random() < 0.3:
        tags["it's"] = chance.choice(["a=b", "c\\d", "'", "e\tf"])
    view = EventView(
        type=["TypeError", "RangeError", "IOException"][fingerprint % 3],
        message=f"Can't read größe of item {fingerprint} (100%)",
        tags=tags,
        environment=chance.choice(["prod", "prod", "staging"]),
        release=f"shop@1.{chance.randrange(4)}.0+1",
        platform="javascript",
        os="web",
        os_version="17",
        model=chance.choice(["", "Pixel"]),
        locale="de-DE",
        sdk="browser/1",
        user=chance.choice(["", *(f"u{n}" for n in range(15))]),
        files=(f"src/{fingerprint}.ts", "vendor.js"),
        functions=(f"f{fingerprint}",),
        timestamp=at,
    )
    payload = json.dumps({"number": number, "message": view.message}, ensure_ascii=False).encode()
    return Happened(uuid7(at), fingerprint, payload, view)


def insert(database: Client, world: World) -> None:
    """Write the events through `ingest`, so that every rollup has them, and the issues."""
    insert_events(database, world.project, world.events)
    names = Counter(event.fingerprint for event in world.events)
    rows = []
    for issue, life in world.issues.items():
        fingerprints = [number for number in names if world.issue_of(number) == issue]
        newest = max(world.by_issue(world.events)[issue], key=lambda e: (e.view.timestamp, e.id.int))
        rows.append([
            *(world.project, issue, fingerprints, newest.view.type, newest.view.message, "f", "javascript"),
            *(life.status, int(life.regressed), from_ms(life.first_seen), from_ms(life.last_seen)),
            *(life.events, life.users, life.first_release, "shop@1.3.0+1", ["prod"]),
            *(life.assignee, "", '{"events":5}' if life.status == "ignored" else ""),
            *(["f", "src"], 0, 7, from_ms(life.escalated)),
        ])  # fmt: skip
    source = issue_id(world.project, MERGED[1])
    rows.append([
        *(world.project, source, [MERGED[1]], *PART, "", "open", 0, from_ms(0), from_ms(0), 0, 0, "", "", []),
        *("", "", "", ["g", "src"], issue_id(world.project, MERGED[0]), 9, from_ms(0)),
    ])  # fmt: skip
    database.insert(
        "issues",
        rows,
        column_names=[
            *("project_id", "issue_id", "fingerprints", "error_type", "message", "culprit", "platform"),
            *("status", "regressed", "first_seen", "last_seen"),
            *("events", "users", "first_release", "last_release", "environments"),
            *("assignee", "resolved_in", "ignore_until"),
            *("grouping_parts", "merged_into", "version", "escalated"),
        ],
    )


def monday(event: Happened) -> date:
    """The day on which the event's week began."""
    day = from_ms(event.view.timestamp).date()
    return day - timedelta(days=day.weekday())


def insert_events(database: Client, project: int, events: list[Happened]) -> None:
    """Write events as the writer does, with payloads in packs."""
    events = sorted(events, key=lambda event: (monday(event), event.fingerprint, event.view.timestamp))
    payloads, packs = packed(
        [event.id.bytes for event in events],
        [event.payload for event in events],
        [monday(event) for event in events],
    )
    rows = [
        [
            *(project, event.fingerprint, from_ms(event.view.timestamp), event.id.int),
            *(from_ms(event.view.timestamp + 500), event.view.release, event.view.environment),
            *(event.view.platform, "error", event.view.os, event.view.os_version, event.view.model),
            *(event.view.locale, event.view.sdk, event.view.user),
            user_hash(project, event.view.user) if event.view.user else 0,
            *(event.view.type, event.view.message, list(event.view.files), list(event.view.functions)),
            *(event.view.tags, "v1", "stack", 90, 90, payload, int.from_bytes(pack, "big")),
        ]
        for event, payload, pack in zip(events, payloads, packs, strict=True)
    ]
    database.insert(
        "ingest",
        rows,
        column_names=[
            *(
                "project_id",
                "fingerprint",
                "ts",
                "id",
                "received",
                "release",
                "environment",
                "platform",
                "kind",
            ),
            *("os", "os_version", "model", "locale", "sdk", "user_id", "user_hash", "error_type", "message"),
            *("files", "functions", "tags", "grouping_version", "grouping_rule", "retention_days"),
            *("payload_days", "payload", "pack"),
        ],
        column_type_names=None,
    )
