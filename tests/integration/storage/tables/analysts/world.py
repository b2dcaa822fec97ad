"""Two projects with four weeks of real sample events, in tables and in plain lists.

The tables are written as the writer writes them.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from cli.demo.sample_events import load_samples
from cli.fingerprint_lines import explain
from control.change_log import changes_between
from schemas.change_records import Author
from schemas.chunks import ChunkEvent, Grouping
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Activity, IssueRecord, Outcome
from schemas.projects import GROUPING_VERSION, Project
from schemas.times import DAY_MS, HOUR_MS, event_time, from_ms, iso
from storage.client import INSERT_SETTINGS, Client
from storage.tables.event_columns import EventColumns
from storage.tables.record_rows import (
    CHANGES,
    ISSUE_ACTIVITY,
    ISSUES,
    OUTCOMES,
    PROJECTS,
    activity_row,
    change_row,
    issue_row,
    outcome_row,
    project_row,
    table,
)

NOW_MS = 1_790_003_723_456
RELEASES = ("shop@1.0.0+1", "shop@1.1.0+2", "shop@1.2.0+3", "shop@2.0.0+4")
SHOP, OTHER = 17, 23
SDKS = ("browser/0.1.0", "react-native/0.2.0", "python/0.1.0")


class Happened(Struct, frozen=True):
    """An event's fields for counting by hand; times are Unix ms."""

    project: int
    id: str
    ts: int
    received: int
    fingerprint: int
    release: str
    environment: str
    kind: str
    sdk: str
    user: str
    error_type: str
    message: str
    tags: dict[str, str]


class World(Struct):
    """All events and records, and which fingerprint's events belong to which issue."""

    events: list[Happened]
    issues: list[IssueRecord]
    activity: list[Activity]
    outcomes: list[Outcome]
    projects: list[Project]
    belongs: dict[tuple[int, int], str]
    columns: pa.Table

    def of(self, project: int) -> list[Happened]:
        """The events of a project."""
        return [event for event in self.events if event.project == project]

    def issue(self, event: Happened) -> str:
        """The issue that shows the event."""
        return self.belongs[event.project, event.fingerprint]

    def shown(self, project: int) -> list[IssueRecord]:
        """The issues of a project that are read on their own."""
        return [i for i in self.issues if int(i.project_id) == project and i.merged_into is None]


def make(seed: int = 7) -> World:
    """A world that is the same for the same seed."""
    chance = random.Random(seed)
    samples = [(sample, _grouping(sample)) for sample in load_samples()]
    block = EventColumns()
    events = [
        *(_event(chance, SHOP, samples, block) for _ in range(1500)),
        *(_event(chance, OTHER, samples, block) for _ in range(150)),
    ]
    issues = [*_issues(chance, SHOP, events), *_issues(chance, OTHER, events)]
    belongs = {
        (int(issue.project_id), int(fingerprint, 16)): issue.id
        for issue in issues
        if issue.merged_into is None
        for fingerprint in issue.fingerprints
    }
    activity = [change for issue in issues for change in _activity(chance, issue)]
    outcomes = [_outcome(chance, number) for number in range(300)]
    projects = [
        Project(str(SHOP), "shop", iso(NOW_MS - 60 * DAY_MS), retention_days=90),
        Project(str(OTHER), "other", iso(NOW_MS - 50 * DAY_MS), retention_days=30, payload_retention_days=7),
    ]
    return World(events, issues, activity, outcomes, projects, belongs, block.table())


def write(client: Client, world: World) -> None:
    """All rows, with older versions and repeats, as crashes leave them."""
    half = world.columns.num_rows // 2
    _insert(client, "ingest", world.columns.slice(0, half), "a")
    _insert(client, "ingest", world.columns.slice(half), "b")
    older = [issue_row(_older(issue)) for issue in world.issues]
    _insert(client, "issues", table(ISSUES, older), "a")
    _insert(client, "issues", table(ISSUES, [issue_row(issue) for issue in world.issues]), "b")
    changes = table(ISSUE_ACTIVITY, [activity_row(change) for change in world.activity])
    # Rules that were skipped end no event: analysts don't see them.
    skipped = Outcome(str(SHOP), iso(NOW_MS), "", "ruleSkipped", "tooExpensive/rule", 5, "grouper/0", 1)
    counts = table(OUTCOMES, [outcome_row(outcome) for outcome in (*world.outcomes, skipped)])
    for name in "ab":
        _insert(client, "issue_activity", changes, name)
        _insert(client, "outcomes", counts, name)
    author = Author("ann", "page")
    made = [
        changes_between(replace(p, retention_days=7, tokens=()), p, author, NOW_MS) for p in world.projects
    ]
    for name in "ab":
        _insert(client, "changes", table(CHANGES, [change_row(one) for many in made for one in many]), name)
    renamed = [
        project_row(Project(p.id, "before", p.created_at, retention_days=7), 1) for p in world.projects
    ]
    _insert(client, "projects", table(PROJECTS, renamed), "a")
    _insert(client, "projects", table(PROJECTS, [project_row(p, 2) for p in world.projects]), "b")


def _insert(client: Client, name: str, rows: pa.Table, token: str) -> None:
    settings = {**INSERT_SETTINGS, "insert_deduplication_token": f"{name}/{token}"}
    client.insert_arrow(name, rows, settings=settings)


def _grouping(sample: dict[str, Any]) -> Grouping:
    found = explain(json.dumps(sample).encode())
    return Grouping(int(found.fingerprint, 16), GROUPING_VERSION, found.rule, found.parts)


def _event(
    chance: random.Random,
    project: int,
    samples: Sequence[tuple[dict[str, Any], Grouping]],
    block: EventColumns,
) -> Happened:
    age = int(28 * DAY_MS * chance.random() ** 1.5)
    # Every day brings a fault that was not there before.
    sample, grouping = samples[int((60 - 2 * age / DAY_MS) * chance.random() ** 2)]
    sent = (NOW_MS - age) // 1000 * 1000 + chance.choice([0, 0, 999, 500])
    received = sent + chance.choice([-2000, 200, 800, 5000, 90_000, 3 * HOUR_MS])
    if chance.random() < 0.02:
        # A clock that is years off.
        sent -= 900 * DAY_MS
    fresh = chance.random() < 0.3
    release = RELEASES[max(0, min(3, 3 - age // (7 * DAY_MS) - (not fresh)))]
    user = chance.choice(["", *(f"u{n}" for n in range(25))])
    tags = dict(sample.get("tags") or {})
    if chance.random() < 0.1:
        tags["crash"] = chance.choice(["true", "false"])
    name = uuid7(received)
    event = sample | {
        "id": str(name),
        "timestamp": iso(sent),
        "release": release,
        "environment": chance.choice(["prod", "prod", "staging", "dev"]),
        "kind": "anr" if chance.random() < 0.05 else "error",
        "user": {"id": user} if user else None,
        "tags": tags,
    }
    sdk = chance.choice(SDKS)
    payload = json.dumps(event).encode()
    block.add_row(ChunkEvent(project, name.bytes, received, sdk, payload), grouping, 90, 30)
    return Happened(
        project=project,
        id=str(name),
        ts=event_time(sent, received),
        received=received,
        fingerprint=grouping.fingerprint,
        release=release,
        environment=event["environment"],
        kind=event["kind"],
        sdk=sdk,
        user=user,
        error_type=event["error"]["type"],
        message=event["error"]["message"],
        tags=tags,
    )


def _issues(chance: random.Random, project: int, events: Iterable[Happened]) -> list[IssueRecord]:
    by_fingerprint: dict[int, list[Happened]] = defaultdict(list)
    for event in events:
        if event.project == project:
            by_fingerprint[event.fingerprint].append(event)
    names = sorted(by_fingerprint, key=lambda name: -len(by_fingerprint[name]))
    whole, part, other_whole, other_part = names[:4]
    merged = {part: whole, other_part: other_whole}
    records = []
    for name in names:
        members = [name, *(p for p, w in merged.items() if w == name)]
        found = [event for member in members for event in by_fingerprint[member]]
        records.append(_issue(chance, project, name, members, found, merged.get(name)))
    return records


def _issue(
    chance: random.Random,
    project: int,
    name: int,
    members: list[int],
    events: list[Happened],
    into: int | None,
) -> IssueRecord:
    first, last = min(events, key=lambda e: e.ts), max(events, key=lambda e: e.ts)
    return IssueRecord(
        id=hex64(issue_id(project, name)),
        project_id=str(project),
        fingerprints=tuple(hex64(member) for member in members),
        error_type=last.error_type,
        message=last.message,
        culprit="",
        status=chance.choice(["open", "open", "resolved", "ignored"]),
        platforms={"javascript": len(events)},
        first_seen_ms=first.ts,
        last_seen_ms=last.ts,
        events=len(events),
        users=len({event.user for event in events} - {""}),
        first_release=first.release,
        last_release=last.release,
        last_event=last.id,
        version=9,
        merged_into=None if into is None else hex64(issue_id(project, into)),
    )


def _older(issue: IssueRecord) -> IssueRecord:
    return IssueRecord(
        id=issue.id,
        project_id=issue.project_id,
        fingerprints=issue.fingerprints[:1],
        error_type="Before",
        message="before",
        culprit="",
        first_seen_ms=issue.first_seen_ms,
        last_seen_ms=issue.first_seen_ms,
        events=1,
        version=1,
    )


def _activity(chance: random.Random, issue: IssueRecord) -> list[Activity]:
    kinds = ["created"]
    for _ in range(chance.choice([0, 1, 2, 4])):
        kinds += ["resolved", chance.choice(["regressed", "regressed", "reopened", "resolved", "commented"])]
    at = issue.first_seen_ms
    changes = []
    for number, kind in enumerate(kinds):
        release = chance.choice(RELEASES) if kind in {"created", "regressed"} else ""
        changes.append(
            Activity(
                id=f"{issue.id}-{number}",
                issue=issue.id,
                project_id=issue.project_id,
                kind=kind,  # type: ignore[arg-type]
                by="system" if release else "ann",
                at=iso(at),
                data={"release": release} if release else {},
            )
        )
        at += chance.randrange(1, 3 * DAY_MS)
    return changes


def _outcome(chance: random.Random, number: int) -> Outcome:
    outcome, reason = chance.choice([
        *(("accepted", ""), ("accepted", ""), ("duplicate", ""), ("invalid", "validationFailed")),
        *(("tooLarge", "payloadTooLarge"), ("rateLimited", "rateLimited"), ("deadLettered", "unreadable")),
    ])  # fmt: skip
    return Outcome(
        project_id=str(chance.choice([SHOP, SHOP, OTHER])),
        minute=from_ms(NOW_MS - chance.randrange(20 * DAY_MS)).replace(second=0, microsecond=0).isoformat(),
        sdk=chance.choice(SDKS),
        outcome=outcome,  # type: ignore[arg-type]
        reason=reason,
        count=chance.randrange(1, 50),
        source=f"edge-{number % 3}",
        sequence=number,
    )
