"""Changes, merges and unmerges that are under way while the issues are rebuilt from ClickHouse: they end as without it."""

import random
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from broker.message import Message
from processors.aggregator.position import DeltasPosition, decode_position, deltas_key
from rebuild.from_clickhouse import delta_positions
from rebuild.issues import Covered, Sources, rebuilt
from rebuild.merges import news
from schemas.ids import hex64
from schemas.increments import decode_bundle, is_bundle
from schemas.issues import Command, DeltaRecord, IssueRecord, decode_delta, decode_issue, encode_json
from schemas.merges import Figures, Member, Signal, SignalKind
from schemas.times import iso, parse_iso
from storage.maintain.rebuild_queries import StoredChange, StoredCounts, StoredIssue
from tests.unit.processors.aggregator.test_histories import ALL, FINGERPRINTS, ask, steps
from tests.unit.processors.aggregator.world import PARTITIONS, PROJECT, START, Crash, World, id_of, increment

SOURCES = Sources(
    since=lambda project, fingerprints, at_ms: (0, []),  # noqa: ARG005
    releases=lambda project, at_ms: [],  # noqa: ARG005
    described=lambda project, event: ("f", ("p",)),  # noqa: ARG005
)


def stored_row(issue: IssueRecord) -> StoredIssue:
    """What the writer has stored of a record."""
    return StoredIssue(
        project=PROJECT, issue=int(issue.id, 16), fingerprints=[int(name, 16) for name in issue.fingerprints],
        error_type=issue.error_type, message=issue.message, culprit=issue.culprit, status=issue.status,
        regressed=issue.regressed, first_ms=issue.first_seen_ms, last_ms=issue.last_seen_ms, events=issue.events,
        users=issue.users, first_release=issue.first_release, last_release=issue.last_release,
        environments=list(issue.environments), releases=list(issue.releases), assignee=issue.assignee or "", resolved_in="",
        ignore_until="", last_event=bytes(16), grouping_version="v1", grouping_rule="stack", grouping_parts=["p"],
        merged_into=int(issue.merged_into or "0", 16), version=issue.version, escalated_ms=issue.escalated_ms,
    )  # fmt: skip


def stored_counts(fingerprint: int, found: list[Any]) -> StoredCounts:
    """What is stored of the events of a fingerprint."""
    events = sum(one.events for one in found)
    return StoredCounts(
        project=PROJECT, fingerprint=fingerprint, events=events, first_ms=START, last_ms=START, received_ms=START,
        first_release="app@1.0.0+1", last_event=bytes(16), last_release="app@1.0.0+1", error_type="E", message="m",
        platform="ios", version="v1", rule="stack", releases={"app@1.0.0+1": events}, environments={"prod": events},
        platforms={"ios": events}, hours={START // 3_600_000: events},
        users=sorted({user for one in found for user in one.users}),
    )  # fmt: skip


def rebuild(world: World) -> None:
    """What `svc rebuild issues` does: all events and records are stored, and nobody works."""
    topics = world.memory.topics
    world.memory.crash_in = None
    found: dict[int, list[Any]] = {}
    unread, last = [], -1
    deltas: dict[int, int] = {}
    positions: dict[int, DeltasPosition] = {}
    for partition in range(PARTITIONS):
        noted = [m.value for m in topics.get(("seen", partition), []) if m.key == deltas_key(partition)]
        position = decode_position(noted[-1] or b"") if noted else DeltasPosition(-1, 0, 0)
        deltas[partition], positions[partition] = position.offset, position
        for offset, message in enumerate(topics.get(("issue-deltas", partition), [])):
            value = message.value or b""
            if not is_bundle(value):
                unread += [decode_delta(value)] if offset > deltas[partition] else []
                continue
            for source in decode_bundle(value):
                last = max(last, source.offset)
                for one in source.increments:
                    found.setdefault(one.fingerprint, []).append(one)
    newest: dict[str, IssueRecord] = {}
    for (topic, _), messages in topics.items():
        for message in messages if topic == "issues" else []:
            issue = decode_issue(message.value or b"")
            newest[issue.id] = issue
    changes: dict[int, list[StoredChange]] = {}
    for activity in sorted(world.activities(is_rebuilt=True), key=lambda one: (one.issue, one.at, one.id)):
        change = StoredChange(parse_iso(activity.at), activity.id, activity.kind, activity.data)
        changes.setdefault(int(activity.issue, 16), []).append(change)
    counts = [stored_counts(fingerprint, increments) for fingerprint, increments in found.items()]
    covered = Covered(dict.fromkeys(range(PARTITIONS), -1) | {0: last}, deltas, unread, positions)
    records = rebuilt(counts, map(stored_row, newest.values()), changes, covered, SOURCES)
    for log in [log for log in topics if log[0] in {"issues", "seen"}]:
        del topics[log]
    for issue in records:
        log = "issues", int(issue.id, 16) % PARTITIONS
        topics.setdefault(log, []).append(Message(issue.id.encode(), encode_json(issue)))
    for signal in news(records):
        world.put(int(signal.issue, 16) % PARTITIONS, DeltaRecord(signal=signal))
    for partition, key, value in delta_positions(covered, records):
        topics.setdefault(("seen", partition), []).append(Message(key, value))
    world.restart()


async def work_a_little(world: World, luck: random.Random) -> None:
    """Some batches, in which the process may be killed, and which needn't read all."""
    world.memory.crash_in = luck.choice((None, luck.randrange(1, 12)))
    try:
        for _ in range(luck.randrange(4)):
            await world.work(limit=luck.randrange(1, 5))
    except Crash:
        world.restart()
    world.memory.crash_in = None


def check(world: World) -> None:
    """Both sides of each merge agree and count the same, what was told holds, and nobody but users undoes anything."""
    issues = {id_of(f): world.issue(f) for f in ALL if world.knows(f)}
    activities = {one.id: one for one in world.activities("merged", "unmerged", is_rebuilt=True)}
    for issue in issues.values():
        assert not issue.life.pending
        assert issue.merged_into is None or issue.id in issues[issue.merged_into].life.members
        for number, member in issue.life.members.items():
            part = issues[number]
            assert (part.merged_into, part.life.join) == (issue.id, member.join)
            assert member.figures.events == part.events
    released = {issue for one in activities.values() for issue in one.data.get("issues", ())}
    for one in activities.values():
        if "from" in one.data:
            assert one.issue in released
        if "into" in one.data:
            join = one.id.removeprefix(f"{one.issue}-").removesuffix("-merged")
            assert f"{one.data['into']}-{join}-merged-{one.issue}" in activities
            assert issues[one.issue].merged_into or one.issue in released


async def under_way(*commands: tuple[str, int, int], batches: int) -> World:
    """A world whose processors have ended after so many batches, with its issues rebuilt."""
    world = World()
    for fingerprint in FINGERPRINTS:
        world.send(fingerprint, increment(fingerprint))
    await world.settle()
    for kind, whole, part in commands[:-1]:
        ask(world, (kind, whole, {part}), 0)
        await world.settle()
    kind, whole, part = commands[-1]
    ask(world, (kind, whole, {part}), 0)
    for _ in range(batches):
        await world.work(1)
    rebuild(world)
    return world


@pytest.mark.parametrize("batches", range(6))
async def test_a_merge_is_completed_wherever_the_processors_ended_in_it(batches: int) -> None:
    # 1 and 2 are in different partitions.
    world = await under_way(("merge", 1, 2), batches=batches)
    await world.settle()
    check(world)
    assert world.issue(2).merged_into == id_of(1)
    assert [one.kind for one in world.activities() if one.kind != "created"] == ["merged", "merged"]


@pytest.mark.parametrize("batches", range(6))
async def test_what_was_merged_into_an_issue_comes_along_wherever_the_processors_ended(batches: int) -> None:
    world = await under_way(("merge", 2, 3), ("merge", 1, 2), batches=batches)
    await world.settle()
    check(world)
    assert world.issue(2).merged_into == world.issue(3).merged_into == id_of(1)


@pytest.mark.parametrize("batches", range(6))
async def test_an_unmerge_is_completed_and_said_wherever_the_processors_ended_in_it(batches: int) -> None:
    world = await under_way(("merge", 1, 2), ("unmerge", 1, 2), batches=batches)
    await world.settle()
    check(world)
    assert (world.issue(2).merged_into, world.issue(1).life.members) == (None, {})
    assert [one.issue for one in world.activities("unmerged") if "from" in one.data] == [id_of(2)]


async def test_events_that_were_counted_by_the_rebuild_show_in_the_issue_whose_answer_is_older() -> None:
    world = await under_way(("merge", 1, 2), batches=2)
    assert world.issue(2).merged_into == id_of(1)
    assert world.issue(1).life.pending
    world.send(2, increment(2, events=5))
    rebuild(world)
    await world.settle()
    check(world)
    assert world.issue(1).events == 7


@pytest.mark.parametrize("writes", range(1, 8))
async def test_a_change_holds_wherever_the_processors_were_killed_in_it(writes: int) -> None:
    world = World()
    world.send(1, increment(1))
    await world.settle()
    world.ask(id_of(1), "update", {"status": "resolved", "assignee": "ann"})
    world.memory.crash_in = writes
    with suppress(Crash):
        await world.settle()
    rebuild(world)
    await world.settle()
    assert (world.issue(1).status, world.issue(1).assignee) == ("resolved", "ann")
    assert [one.kind for one in world.activities()] == ["created", "resolved", "assigned"]


@pytest.mark.parametrize("known", [(), (1,), (2,)])
@pytest.mark.parametrize("kind", get_args(SignalKind))
def test_a_signal_of_an_issue_of_which_nothing_is_stored_changes_nothing(
    kind: SignalKind, known: tuple[int, ...]
) -> None:
    member = {id_of(3): Member(hex64(3), "b", 1, Figures())}
    signals = [
        Signal("leave", id_of(2), id_of(1), str(PROJECT), "c"),
        Signal(kind, id_of(2), id_of(1), str(PROJECT), "c", members=member),
        Signal(kind, id_of(1), id_of(2), str(PROJECT), "c", members=member),
    ]
    stored = StoredChange(START, f"{id_of(1)}-{'u' * 36}-unmerged", "unmerged", {"issues": [id_of(2)]})
    command = Command("u" * 36, id_of(1), str(PROJECT), "unmerge", "ann", iso(START))
    unread = [DeltaRecord(command=command), *(DeltaRecord(signal=signal) for signal in signals)]
    covered = Covered({0: 0}, {0: 0}, unread)
    counts = [stored_counts(fingerprint, [increment(fingerprint)]) for fingerprint in known]
    records = rebuilt(counts, [], {int(id_of(1), 16): [stored]}, covered, SOURCES)
    assert [record.id for record in records] == [id_of(fingerprint) for fingerprint in known]
    assert not any(record.merged_into or record.life.members for record in records)


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.integers(0, 1 << 32))
# The unmerge is sent on three times, and the last ones are read after a part has joined that the first one could not release.
@example([("event", 1, 1), ("merge", 1, {2, 3, 4}), ("unmerge", 2, {1, 2, 3}), *[("event", 1, 1)] * 3], 150)
async def test_merges_and_unmerges_end_as_users_wanted_though_issues_are_rebuilt_meanwhile(
    history: list[tuple[Any, ...]], seed: int
) -> None:
    """However often, and wherever processes were killed."""
    world, luck = World(), random.Random(seed)
    for fingerprint in FINGERPRINTS:
        world.send(fingerprint, increment(fingerprint))
    await world.settle()
    for at, (kind, issue, named) in enumerate(history):
        # Others may have no events yet, and then nobody can ask for it. A rebuild knows events that the refusal didn't.
        what = named & set(FINGERPRINTS) if kind == "unmerge" else named
        ask(world, (kind, issue, what), at)
        await work_a_little(world, luck)
        if luck.random() < 0.3:
            rebuild(world)
    rebuild(world)
    await world.settle(limit=luck.randrange(1, 9))
    check(world)
