"""Promises that must hold at the end of each schedule."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from itertools import count
from typing import Any, Final
from uuid import UUID

from processors.aggregator.position import decode_position, deltas_key
from processors.changelog import PartitionLog
from processors.grouper.dedup_log import decode_entry, decode_horizon, horizon_key, is_entry
from schemas.change_records import decode_change, is_change
from schemas.chunks import decode_chunk, decode_grouped
from schemas.dead_letters import from_headers, replayed_before
from schemas.idempotency import is_repeat
from schemas.ids import event_partition, hex64, issue_id
from schemas.increments import is_bundle
from schemas.issues import REBUILD, IssueRecord, decode_activity, decode_delta
from schemas.topics import Topic, topic_name
from storage.tables.rollups import ROLLUPS
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_tables import Event, count_key
from tests.simulation.kafka import Broker, LogRecord
from tests.simulation.operations import OTHER, PROJECT, TOGETHER, Changes, Erasures


class Broken(Exception):
    """A promise does not hold."""


Dead = Mapping[tuple[int, bytes], int]
"""Projects and ids of events, with their fingerprints."""


def dead_events(broker: Broker, server: Server) -> Dead:
    """The dead letters of the writer whose event is not stored, and was not erased after it was put back and stored."""
    [log] = broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})]
    dead: dict[tuple[int, bytes], int] = {}
    for record in log.records:
        if replayed_before(record.headers) is None and from_headers(record.headers)[0].stage == "writer":
            chunk = decode_grouped(record.value or b"")
            for event, group in zip(decode_chunk(chunk.chunk), chunk.grouping_of, strict=True):
                dead[event.project, event.id] = chunk.groupings[group].fingerprint
    stored = {(row.project, row.id) for row in server.tables["events"].rows}
    for project, number in stored | server.erasing.never_again:
        dead.pop((project, number[::-1]), None)
    return dead


def check_stored(server: Server, wanted: set[tuple[int, bytes]], excused: set[bytes], dead: Dead) -> int:
    """Each wanted (acknowledged) id is once in `events` and `payloads`; returns the number of stored events.

    Raises Broken. `excused` are ids whose bytes are damaged and in quarantine; an event may be dead instead.
    """
    stored = set[tuple[int, bytes]]()
    for name in ("events", "payloads"):
        found = Counter((row.project, row.id[::-1]) for row in server.tables[name].rows)
        twice = [key for key, n in found.items() if n > 1]
        if twice:
            raise Broken(f"{len(twice)} ids are twice in {name}")
        stored = set(found)
        erased = {(project, number[::-1]) for project, number in server.erasing.never_again}
        missing = {key for key in wanted - stored - erased - dead.keys() if key[1] not in excused}
        if missing:
            raise Broken(f"{len(missing)} acknowledged ids are not in {name}")
    if len(list(server.tables["events"].rows)) != len(stored):
        raise Broken("payloads and events differ")
    if server.blind:
        raise Broken(f"{server.blind[0]} inserted a block in a pause")
    return len(stored)


def check_servers(servers: Sequence[Server], partitions: int) -> None:
    """Each event is on the server of its partition, and rows of other kinds are the same on all. Raises Broken."""
    for number, server in enumerate(servers):
        for row in server.tables["events"].rows:
            if event_partition(row.project, row.id[::-1], partitions) % len(servers) != number:
                raise Broken(f"an event is on {server.name}, where it does not belong")
        for name, rows in server.latest.items():
            if rows != servers[0].latest[name]:
                raise Broken(f"{name} differs between {server.name} and {servers[0].name}")


def check_rollups(server: Server) -> None:
    """Every rollup counts the rows of `events`. Raises Broken."""
    events = Counter(map(count_key, server.tables["events"].rows))
    for rollup in ROLLUPS:
        counts = server.tables[rollup.table].counts
        if {key: n for key, n in counts.items() if n} != events:
            raise Broken(f"{rollup.table} counts {dict(counts)}, events has {dict(events)}")


def check_issues(server: Server, changes: Changes, dead: Dead, *, is_rebuilt: bool) -> None:
    """Each stored event belongs to one issue, which counts it once and was created once. Raises Broken.

    A rebuild counts events that the processors had not folded, without activities.
    """
    known = changes.issues()
    if lost := [number for _, number in server.latest["issues"] if hex64(number) not in known]:
        raise Broken(f"{hex64(lost[0])} is not in the topic")
    for issue in known.values():
        key = int(issue.project_id), int(issue.id, 16)
        _, row = server.latest["issues"].get(key, (0, {"version": 0}))
        if row["version"] != issue.version:
            raise Broken(
                f"{issue.id} has version {issue.version} in the topic and {row['version']} in the table"
            )
    events = Counter((row.project, row.fingerprint) for row in server.tables["events"].rows)
    counted = events.copy()
    for (project, _, fingerprint), n in server.erasing.totals().items():
        counted[project, fingerprint] += n
    counted.update((project, fingerprint) for (project, _), fingerprint in dead.items())
    rows: list[Mapping[str, Any]] = [row for _, row in server.latest["issues"].values()]
    grouped = set[tuple[int, int]]()
    for row in rows:
        if row["deleted"] or row["merged_into"]:
            continue
        pairs = {(row["project_id"], fingerprint) for fingerprint in row["fingerprints"]}
        stored = sum(counted[pair] for pair in pairs)
        if row["events"] != stored:
            raise Broken(
                f"{hex64(row['issue_id'])} counts {row['events']} events, {stored} are stored or erased"
            )
        grouped.update(pairs)
    if events.keys() - grouped:
        raise Broken(f"{len(events.keys() - grouped)} fingerprints belong to no issue")
    created = Counter(
        row["issue_id"] for _, row in server.latest["issue_activity"].values() if row["kind"] == "created"
    )
    # One that was merged before its first event may be told only as a part.
    early = {issue_id(project, int(TOGETHER, 16)) for project in (PROJECT, OTHER)}
    if any(
        created[row["issue_id"]] not in ({0, 1} if is_rebuilt or row["issue_id"] in early else {1})
        for row in rows
    ):
        raise Broken(f"issues were not created once: {dict(created)}")


_STATUS: Final[dict[str, str]] = {
    "resolved": "resolved",
    "ignored": "ignored",
    "reopened": "open",
    "regressed": "open",
}
"""The status of an issue after an activity."""


def check_figures(
    server: Server, broker: Broker, changes: Changes, expired: Mapping[int, list[LogRecord]], dead: Dead
) -> None:
    """The figures of each issue are those of its stored events, and its status is the one told last. Raises Broken.

    Where some of its events were erased or are dead, nothing but its status is known. `expired` are records
    of `issue-activity` that its partitions have no more.
    """
    stored: dict[tuple[int, int], list[Event]] = {}
    for event in server.tables["events"].rows:
        stored.setdefault((event.project, event.fingerprint), []).append(event)
    erased = {(project, fingerprint) for project, _, fingerprint in server.erasing.totals()}
    erased.update((project, fingerprint) for (project, _), fingerprint in dead.items())
    _check_changes(server, broker, expired)
    reported = _reported(broker, expired)
    for issue in changes.issues().values():
        events = [event for pair in _pairs(issue) for event in stored.get(pair, ())]
        if issue.merged_into is None and events and erased.isdisjoint(_pairs(issue)):
            _compare(issue, _figures(events))
        merged = reported.get((issue.id, True), "unmerged")
        if (issue.merged_into is not None) != (merged == "merged"):
            raise Broken(f"{issue.id} was {merged} last, and is in {issue.merged_into}")
        status = reported.get((issue.id, False), "open")
        if (issue.status, issue.regressed) != (_STATUS.get(status, "open"), status == "regressed"):
            raise Broken(f"{issue.id} is {issue.status}, and was {status} last")


def _check_changes(server: Server, broker: Broker, expired: Mapping[int, list[LogRecord]]) -> None:
    """Each record of who changed what is stored once. Raises Broken."""
    recorded = {
        decode_change(record.value or b"").id
        for log in broker.topics[topic_name(Topic.ISSUE_ACTIVITY, "svc.", {})]
        for record in (*expired.get(log.partition, ()), *log.records)
        if is_change(record.value or b"")
    }
    stored = [row["id"] for _, row in server.latest["changes"].values()]
    if sorted(stored) != sorted(recorded):
        raise Broken(f"changes {sorted(recorded)} were recorded, {sorted(stored)} are stored")


def _reported(broker: Broker, expired: Mapping[int, list[LogRecord]]) -> dict[tuple[str, bool], str]:
    """Of each issue the last activity that sets its status, and that of a merge, in the order they were first told."""
    known, last = set[str](), dict[tuple[str, bool], str]()
    for log in broker.topics[topic_name(Topic.ISSUE_ACTIVITY, "svc.", {})]:
        for record in (*expired.get(log.partition, ()), *log.records):
            if is_change(record.value or b""):
                continue
            activity = decode_activity(record.value or b"")
            is_merge = "into" in activity.data or "from" in activity.data
            if (is_merge or activity.kind in _STATUS) and activity.id not in known:
                known.add(activity.id)
                last[activity.issue, is_merge] = activity.kind
    return last


def _pairs(issue: IssueRecord) -> list[tuple[int, int]]:
    return [(int(issue.project_id), int(number, 16)) for number in issue.fingerprints]


def _figures(events: list[Event]) -> dict[str, Any]:
    """The facts of an issue about these events."""
    times = [round(event.ts.replace(tzinfo=UTC).timestamp() * 1000) for event in events]
    newest = max(events, key=lambda event: (event.ts, event.number))
    oldest = min(events, key=lambda event: (event.ts, event.column("release")))
    return {
        "first_seen_ms": min(times),
        "last_seen_ms": max(times),
        "users": len({event.column("user_hash") for event in events} - {0}),
        "first_release": oldest.column("release"),
        "last_release": newest.column("release"),
        "last_event": str(UUID(int=newest.number)),
        "message": newest.column("message"),
        "hours": Counter(time // 3_600_000 for time in times),
        **{
            f"{name}s": Counter(event.column(name) for event in events)
            for name in ("release", "environment", "platform")
        },
    }


def _compare(issue: IssueRecord, figures: Mapping[str, Any]) -> None:
    for name, value in figures.items():
        if getattr(issue, name) != value:
            raise Broken(f"{issue.id} has {name} {getattr(issue, name)}, its events {value}")


def check_merges(changes: Changes) -> None:
    """Each merge and unmerge has ended, and both sides agree about it. Raises Broken."""
    issues = changes.issues()
    for issue in issues.values():
        if issue.life.pending:
            raise Broken(f"{issue.id} waits for {sorted(issue.life.pending)}")
        if issue.merged_into is not None and issue.id not in issues[issue.merged_into].life.members:
            raise Broken(f"{issue.id} is merged into {issue.merged_into}, which does not have it")
        for number, member in issue.life.members.items():
            joined = issues[number]
            if (joined.merged_into, joined.life.join) != (issue.id, member.join):
                raise Broken(f"{issue.id} has the member {number}, which is merged into {joined.merged_into}")
            for name in ("events", "first_seen_ms", "last_seen_ms", "last_event", "releases", "hours"):
                if getattr(member.figures, name) != getattr(joined, name):
                    raise Broken(f"{issue.id} has another {name} of {number} than it has itself")


def check_undone(server: Server) -> None:
    """A merge that a rebuild has undone is an activity of both issues. Raises Broken."""
    rows = [row for _, row in server.latest["issue_activity"].values() if row["by"] == REBUILD]
    reported = {row["id"] for row in rows}
    for row in rows:
        # Ids are `whole-command-unmerged-part` and `part-command-unmerged-from-whole`.
        issue, what, other = row["id"][:16], row["id"][16:-16], row["id"][-16:]
        twins = what.removesuffix("from-") if what.endswith("from-") else f"{what}from-"
        if f"{other}{twins}{issue}" not in reported:
            raise Broken(f"{row['id']} is told of {issue} alone")


def check_outcomes(server: Server, stored: int) -> None:
    """Accepted events are stored, erased, duplicates, or dead letters. Raises Broken."""
    outcomes: Counter[str] = Counter()
    for _, row in server.latest["outcomes"].values():
        outcomes[row["outcome"]] += row["count"]
    expected = outcomes["accepted"] - outcomes["duplicate"] - outcomes["deadLettered"]
    expected -= server.erasing.totals().total()
    if expected != stored:
        raise Broken(f"outcomes say {expected}, {stored} are stored: {dict(outcomes)}")


def check_seen(broker: Broker) -> None:
    """A reader of `seen` that drops old owners' writes finds a decision on each record of `events`. Raises Broken."""
    if missing := unread(broker):
        raise Broken(missing)


def unread(broker: Broker) -> str:
    """The gaps for readers of `seen`: the decision about a record of `events`, or a position in `issue-deltas`."""
    for log in broker.topics[topic_name(Topic.SEEN, "svc.", {})]:
        reader, part = PartitionLog(), dict[bytes, bytes | None]()
        for record in log.records:
            key = record.key or b""
            if reader.read(record.offset, key, record.value, record.headers, part.get(key)):
                part[key] = record.value
        entries = [decode_entry(value) for key, value in part.items() if value and is_entry(key)]
        horizon = part.get(horizon_key(log.partition))
        decided = {offset for entry in entries for offset in range(entry.first, entry.last + 1)}
        events = broker.topics[topic_name(Topic.EVENTS, "svc.", {})][log.partition]
        # A rebuild decides nothing about records that have expired.
        begin = max(events.start, decode_horizon(horizon) if horizon else 0)
        hole = next(offset for offset in count(begin) if offset not in decided)
        if hole < events.end:
            return f"readers of seen/{log.partition} miss the decision about {hole} of {events.end}"
        deltas = broker.topics[topic_name(Topic.ISSUE_DELTAS, "svc.", {})][log.partition]
        position = part.get(deltas_key(log.partition))
        folded = decode_position(position).offset if position else -1
        if deltas.records and folded < deltas.end - 1:
            return f"readers of seen/{log.partition} know the position {folded} of {deltas.end}"
    return ""


def check_erased(server: Server, changes: Changes, erasures: Erasures, refused: Iterable[bytes]) -> None:
    """Erased events are in no table, and no issue names them. Raises Broken.

    Events that were lost or refused before are restored afterwards, as events that arrive later.
    """
    erased = {number[::-1] for _, number in server.erasing.never_again}
    left = erasures.erased - erased - set(refused) - {number[::-1] for _, number in server.lost}
    if left:
        raise Broken(f"{len(left)} events of erased users were left out")
    for name in ("events", "payloads"):
        back = server.erasing.never_again & {(row.project, row.id) for row in server.tables[name].rows}
        if back:
            raise Broken(f"{len(back)} erased events are in {name}")
    named = {(row["project_id"], row["last_event"]) for _, row in server.latest["issues"].values()}
    named |= {
        (int(issue.project_id), UUID(issue.last_event).bytes[::-1])
        for issue in changes.issues().values()
        if issue.last_event
    }
    if named & server.erasing.never_again:
        raise Broken("erased events are named by issues")
    begun = {erasure for (_, erasure), (_, row) in server.erasing.ledger.items() if row["stage"] != "listing"}
    if begun & server.erasing.listed.keys():
        raise Broken("the list of an erasure is left")


def check_changes(server: Server, broker: Broker, changes: Changes, *, is_rebuilt: bool) -> None:
    """A confirmed change is applied, and none is told twice. Raises Broken.

    A rebuild knows the ids of those changes alone that are told and are no comments.
    """
    issues = changes.issues()
    known = {number for issue in issues.values() for number in issue.life.commands}
    refused = {
        number
        for record in broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})][0].records
        for number in changes.sent
        if number.encode() in (record.value or b"")
    }
    reported: Counter[str] = Counter()
    for _, row in server.latest["issue_activity"].values():
        for number in changes.sent:
            # An activity's id contains that of its command; a comment and an assignment have one each.
            if number in row["data"] and number in row["id"]:
                reported[number] += 1
    for number in () if is_rebuilt else _given(broker):
        if number in changes.sent and number not in known | refused:
            raise Broken(f"the {changes.sent[number].kind} {number} was given, and has no effect")
    for number, command in changes.sent.items():
        once = command.kind == "comment" or "assignee" in command.data
        if reported[number] > 1:
            raise Broken(f"the {command.kind} {number} is told {reported[number]} times")
        if number in changes.confirmed and number not in refused:
            if not is_rebuilt and not is_repeat(number, issues[changes.confirmed[number]].life.commands):
                raise Broken(f"the confirmed {command.kind} {number} is not applied")
            if once and reported[number] != 1:
                raise Broken(f"the confirmed {command.kind} {number} is not told")


def _given(broker: Broker) -> set[str]:
    """The ids of the commands in `issue-deltas`."""
    deltas = [
        decode_delta(record.value)
        for log in broker.topics[topic_name(Topic.ISSUE_DELTAS, "svc.", {})]
        for record in log.records
        if record.value and not is_bundle(record.value)
    ]
    return {delta.command.id for delta in deltas if delta.command is not None}
