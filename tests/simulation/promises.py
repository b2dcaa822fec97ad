"""What must hold at the end of a schedule, whatever happened in it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from processors.changelog import PartitionLog
from processors.grouper.dedup_log import (
    decode_entry,
    decode_horizon,
    decode_position,
    deltas_key,
    horizon_key,
    is_entry,
)
from processors.grouper.replay import first_hole
from schemas.idempotency import is_repeat
from schemas.ids import hex64
from schemas.topics import Topic, topic_name
from storage.repair.rollups import ROLLUPS
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_tables import count_key
from tests.simulation.kafka import Broker
from tests.simulation.operations import Changes, Erasures


class Broken(Exception):
    """A promise does not hold."""


def check_stored(server: Server, project: int, acknowledged: Iterable[str], excused: set[bytes]) -> int:
    """Each acknowledged id is once in `events` and `payloads`; returns the number of stored events.

    Raises Broken. `excused` are ids whose bytes are damaged and in quarantine.
    """
    wanted = {UUID(number).bytes for number in acknowledged}
    stored = set[bytes]()
    for name in ("events", "payloads"):
        found = Counter((row.project, row.id[::-1]) for row in server.tables[name].rows)
        twice = [key for key, n in found.items() if n > 1]
        if twice:
            raise Broken(f"{len(twice)} ids are twice in {name}")
        stored = {number for of, number in found if of == project}
        erased = {number[::-1] for _, number in server.erasing.never_again}
        missing = wanted - stored - excused - erased
        if missing:
            raise Broken(f"{len(missing)} acknowledged ids are not in {name}")
    if len(list(server.tables["events"].rows)) != len(stored):
        raise Broken("payloads and events differ")
    return len(stored)


def check_rollups(server: Server) -> None:
    """Every rollup counts what `events` has. Raises Broken."""
    events = Counter(map(count_key, server.tables["events"].rows))
    for rollup in ROLLUPS:
        counts = server.tables[rollup.table].counts
        if {key: n for key, n in counts.items() if n} != events:
            raise Broken(f"{rollup.table} counts {dict(counts)}, events has {dict(events)}")


def check_issues(server: Server, changes: Changes, *, is_rebuilt: bool) -> None:
    """Each stored event belongs to one issue, which counts it once and was created once. Raises Broken.

    A rebuild counts what the processors had not folded, and tells nothing of it.
    """
    for issue in changes.issues().values():
        key = int(issue.project_id), int(issue.id, 16)
        _, row = server.latest["issues"].get(key, (0, {"version": 0}))
        if row["version"] != issue.version:
            raise Broken(
                f"{issue.id} has version {issue.version} in the topic and {row['version']} in the table"
            )
    events = Counter(row.fingerprint for row in server.tables["events"].rows)
    counted = events.copy()
    for (_, _, fingerprint), n in server.erasing.totals().items():
        counted[fingerprint] += n
    rows: list[Mapping[str, Any]] = [row for _, row in server.latest["issues"].values()]
    grouped = set[int]()
    for row in rows:
        if row["deleted"] or row["merged_into"]:
            continue
        stored = sum(counted[fingerprint] for fingerprint in row["fingerprints"])
        if row["events"] != stored:
            raise Broken(
                f"{hex64(row['issue_id'])} counts {row['events']} events, {stored} are stored or erased"
            )
        grouped.update(row["fingerprints"])
    if events.keys() - grouped:
        raise Broken(f"{len(events.keys() - grouped)} fingerprints belong to no issue")
    created = Counter(
        row["issue_id"] for _, row in server.latest["issue_activity"].values() if row["kind"] == "created"
    )
    if any(created[row["issue_id"]] not in ({0, 1} if is_rebuilt else {1}) for row in rows):
        raise Broken(f"issues were not created once: {dict(created)}")


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
    """A reader of `seen` that drops what old owners wrote finds a decision about each record of `events`. Raises Broken."""
    if missing := unread(broker):
        raise Broken(missing)


def unread(broker: Broker) -> str:
    """What readers of `seen` miss: the decision about a record of `events`, or a position in `issue-deltas`."""
    for log in broker.topics[topic_name(Topic.SEEN, "svc.", {})]:
        reader, part = PartitionLog(), dict[bytes, bytes | None]()
        for record in log.records:
            key = record.key or b""
            if reader.read(record.offset, key, record.value, record.headers, part.get(key)):
                part[key] = record.value
        entries = [decode_entry(value) for key, value in part.items() if value and is_entry(key)]
        horizon = part.get(horizon_key(log.partition))
        hole = first_hole(
            ((entry.first, entry.last) for entry in entries), decode_horizon(horizon) if horizon else 0
        )
        end = broker.topics[topic_name(Topic.EVENTS, "svc.", {})][log.partition].end
        if hole < end:
            return f"readers of seen/{log.partition} miss the decision about {hole} of {end}"
        deltas = broker.topics[topic_name(Topic.ISSUE_DELTAS, "svc.", {})][log.partition]
        position = part.get(deltas_key(log.partition))
        folded = decode_position(position).offset if position else -1
        if deltas.records and folded < deltas.end - 1:
            return f"readers of seen/{log.partition} know the position {folded} of {deltas.end}"
    return ""


def check_erased(server: Server, changes: Changes, erasures: Erasures, refused: Iterable[bytes]) -> None:
    """What was erased is in no table, and no issue names it. Raises Broken.

    What was lost or refused before is restored afterwards, as an event that arrives later.
    """
    erased = {number[::-1] for _, number in server.erasing.never_again}
    left = erasures.gone - erased - set(refused) - {number[::-1] for _, number in server.lost}
    if left:
        raise Broken(f"{len(left)} events of erased users were left out")
    for name in ("events", "payloads"):
        back = erased & {row.id[::-1] for row in server.tables[name].rows}
        if back:
            raise Broken(f"{len(back)} erased events are in {name}")
    named = {row["last_event"][::-1] for _, row in server.latest["issues"].values()}
    named |= {UUID(issue.last_event).bytes for issue in changes.issues().values() if issue.last_event}
    if named & erased:
        raise Broken(f"{len(named & erased)} erased events are named by issues")
    begun = {erasure for (_, erasure), (_, row) in server.erasing.ledger.items() if row["stage"] != "listing"}
    if begun & server.erasing.listed.keys():
        raise Broken("the list of an erasure is left")


def check_changes(server: Server, broker: Broker, changes: Changes, *, is_rebuilt: bool) -> None:
    """A confirmed change is applied, and none is told twice. Raises Broken.

    A rebuild knows the ids of those changes alone that are told and are no comments.
    """
    issues = changes.issues()
    refused = {
        number
        for record in broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})][0].records
        for number in changes.sent
        if number.encode() in (record.value or b"")
    }
    told: Counter[str] = Counter()
    for _, row in server.latest["issue_activity"].values():
        for number in changes.sent:
            # An activity's id contains that of its command; a comment and an assignment have one each.
            if number in row["data"] and number in row["id"]:
                told[number] += 1
    for number, command in changes.sent.items():
        once = command.kind == "comment" or "assignee" in command.data
        if told[number] > 1:
            raise Broken(f"the {command.kind} {number} is told {told[number]} times")
        if number in changes.confirmed and number not in refused:
            if not is_rebuilt and not is_repeat(number, issues[command.issue].life.commands):
                raise Broken(f"the confirmed {command.kind} {number} is not applied")
            if once and told[number] != 1:
                raise Broken(f"the confirmed {command.kind} {number} is not told")
