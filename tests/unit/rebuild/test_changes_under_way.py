"""Changes under way while issues are rebuilt from ClickHouse: a part whose merge has not ended is a separate issue."""

import itertools
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, get_args
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.message import Message
from processors.aggregator.position import decode_position, deltas_key
from rebuild.from_clickhouse import _unread, delta_positions
from rebuild.rebuilt_issues import Covered, Sources, Unread, rebuilt
from rebuild.rebuilt_merges import Pair
from schemas.ids import hex64
from schemas.increments import decode_bundle, is_bundle
from schemas.issues import REBUILD, Command, DeltaRecord, IssueRecord, decode_issue, encode_json
from schemas.merges import Figures, Member, Signal, SignalKind
from schemas.settings import ProcessorsSettings
from schemas.times import iso, parse_iso
from storage.maintain.rebuild_queries import StoredChange, StoredCounts, StoredIssue
from tests.unit.processors.aggregator.test_histories import ALL, FINGERPRINTS, ask, steps
from tests.unit.processors.aggregator.world import PARTITIONS, PROJECT, START, Crash, World, id_of, increment

_seconds = itertools.count(1)
SOURCES = Sources(
    since=lambda project, fingerprints, at_ms: (0, []),  # noqa: ARG005
    releases=lambda project, at_ms: [],  # noqa: ARG005
    described=lambda project, event: ("f", ("p",)),  # noqa: ARG005
)


def stored_row(issue: IssueRecord) -> StoredIssue:
    """The writer's rows of a record."""
    return StoredIssue(
        project=PROJECT, issue=int(issue.id, 16), fingerprints=[int(name, 16) for name in issue.fingerprints],
        error_type=issue.error_type, message=issue.message, culprit=issue.culprit, status=issue.status,
        regressed=issue.regressed, first_ms=issue.first_seen_ms, last_ms=issue.last_seen_ms, events=issue.events,
        users=issue.users, first_release=issue.first_release, last_release=issue.last_release,
        environments=list(issue.environments), releases=list(issue.releases), assignee=issue.assignee or "",
        resolved_in="",
        ignore_until="", last_event=bytes(16), grouping_version="v1", grouping_rule="stack", grouping_parts=["p"],
        merged_into=int(issue.merged_into or "0", 16), version=issue.version, escalated_ms=issue.escalated_ms,
    )  # fmt: skip


def stored_counts(fingerprint: int, found: list[Any]) -> StoredCounts:
    """The stored events of a fingerprint."""
    events = sum(one.events for one in found)
    return StoredCounts(
        project=PROJECT, fingerprint=fingerprint, events=events, first_ms=START, last_ms=START, received_ms=START,
        first_release="app@1.0.0+1", last_event=bytes(16), last_release="app@1.0.0+1", error_type="E", message="m",
        platform="ios", version="v1", rule="stack", releases={"app@1.0.0+1": events}, environments={"prod": events},
        platforms={"ios": events}, hours={START // 3_600_000: events},
        users=sorted({user for one in found for user in one.users}),
    )  # fmt: skip


def stored(world: World) -> tuple[dict[int, list[Any]], int]:
    """The increments of each fingerprint, and the last source offset."""
    found: dict[int, list[Any]] = {}
    last = -1
    for (topic, _), messages in world.memory.topics.items():
        for message in messages if topic == "issue-deltas" and messages else ():
            for source in decode_bundle(message.value or b"") if is_bundle(message.value or b"") else ():
                last = max(last, source.offset)
                for one in source.increments:
                    found.setdefault(one.fingerprint, []).append(one)
    return found, last


def unread_of(world: World) -> tuple[Unread, dict[int, int]]:
    """What the processors have not read, and the last offsets that they have."""
    unread, last = Unread(), dict[int, int]()
    for partition in range(PARTITIONS):
        noted = [m.value for m in world.log("seen", partition) if m.key == deltas_key(partition)]
        last[partition] = decode_position(noted[-1] or b"").offset if noted else -1
        for message in world.log("issue-deltas", partition)[last[partition] + 1 :]:
            unread.add(message.value or b"")
    return unread, last


def changes_of(world: World) -> dict[int, list[StoredChange]]:
    """The writer's rows of activities."""
    changes: dict[int, list[StoredChange]] = {}
    for activity in sorted(
        world.activities(is_rebuilt=True), key=lambda one: (one.issue, one.version, one.at, one.id)
    ):
        change = StoredChange(
            parse_iso(activity.at), activity.id, activity.kind, activity.data, activity.version
        )
        changes.setdefault(int(activity.issue, 16), []).append(change)
    return changes


def rebuild(world: World, killed_before: str = "") -> list[Pair]:
    """`svc rebuild issues` where all is stored and no process runs; it may be killed before it writes a topic."""
    topics = world.memory.topics
    world.memory.crash_in = None
    increments, last_source = stored(world)
    unread, last = unread_of(world)
    newest: dict[str, IssueRecord] = {}
    for (topic, _), messages in topics.items():
        for message in messages if topic == "issues" else []:
            issue = decode_issue(message.value or b"")
            newest[issue.id] = issue
    counts = [stored_counts(fingerprint, those) for fingerprint, those in increments.items()]
    covered = Covered(dict.fromkeys(range(PARTITIONS), -1) | {0: last_source}, last, unread)
    at = iso(START + next(_seconds) * 1000)
    new = rebuilt(counts, map(stored_row, newest.values()), changes_of(world), covered, SOURCES, at)
    for activity in new.activities:
        world.log("issue-activity", partition_of(activity.issue)).append(
            Message(activity.issue.encode(), encode_json(activity))
        )
    # Rows in ClickHouse are not lost with the topic.
    for issue in new.records[: len(new.records) // 2 if killed_before == "issues" else None]:
        world.log("issues", partition_of(issue.id)).append(Message(issue.id.encode(), encode_json(issue)))
    if killed_before:
        return new.undone
    for partition, key, value in delta_positions(last, new.records):
        world.log("seen", partition).append(Message(key, value))
    world.restart()
    return new.undone


def partition_of(issue: str) -> int:
    return int(issue, 16) % PARTITIONS


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
    """Both sides of each merge agree on state, counts and last activity; only users and a rebuild undo."""
    issues = {id_of(f): world.issue(f) for f in ALL if world.knows(f)}
    sent = {hex64(f): sum(one.events for one in increments) for f, increments in stored(world)[0].items()}
    wholes = [issue for issue in issues.values() if issue.merged_into is None]
    assert sorted(f for issue in wholes for f in issue.fingerprints) == sorted(
        issue.fingerprints[0] for issue in issues.values()
    )
    assert all(issue.events == sum(sent.get(f, 0) for f in issue.fingerprints) for issue in wholes)
    reported = world.activities("merged", "unmerged", is_rebuilt=True)
    for issue in issues.values():
        assert not issue.life.pending
        assert issue.merged_into is None or issue.id in issues[issue.merged_into].life.members
        for number, member in issue.life.members.items():
            part = issues[number]
            assert (part.merged_into, part.life.join) == (issue.id, member.join)
            assert member.figures.events == part.events
            as_whole = [
                o.kind
                for o in reported
                if o.issue == issue.id and member.fingerprint in o.data.get("fingerprints", ())
            ]
            assert as_whole[-1] == "merged"
        as_part = [
            one.kind for one in reported if one.issue == issue.id and {"into", "from"} & one.data.keys()
        ]
        assert (issue.merged_into is not None) == (as_part[-1:] == ["merged"])
    released = {issue for one in reported for issue in one.data.get("issues", ())}
    # A part that was refused before may join and leave again, while the whole knows of no merge.
    joined = {one.data["issue"] for one in reported if "issue" in one.data}
    assert joined.intersection(one.issue for one in reported if "from" in one.data) <= released


WRITTEN = ("issues", "seen")


async def under_way(*commands: tuple[str, int, int], batches: int) -> tuple[World, list[str]]:
    """A world whose processors have ended after so many batches of the last command; the ids of the commands."""
    world, ids = World(), list[str]()
    for fingerprint in FINGERPRINTS:
        world.send(fingerprint, increment(fingerprint))
    await world.settle()
    for kind, whole, part in commands:
        while len(ids) and await world.work():
            pass
        data = {"issues": [id_of(part)]} if kind == "merge" else {"fingerprints": [hex64(part)]}
        ids.append(world.ask(id_of(whole), kind, data))
    for _ in range(batches):
        await world.work(1)
    return world, ids


@pytest.mark.parametrize("killed_before", ["", *WRITTEN])
@pytest.mark.parametrize("batches", range(1, 6))
async def test_a_merge_that_has_begun_and_not_ended_is_undone_and_told(
    batches: int, killed_before: str
) -> None:
    # 1 and 2 are in different partitions.
    world, _ = await under_way(("merge", 1, 2), batches=batches)
    is_ended = id_of(2) in world.issue(1).life.members and world.issue(2).merged_into is not None
    undone = rebuild(world, killed_before)
    assert undone == ([] if is_ended else [Pair(id_of(1), id_of(2))])
    if killed_before:
        rebuild(world)
    await world.settle()
    check(world)
    assert (world.issue(2).merged_into is not None) == is_ended
    assert world.issue(1).events == 1 + is_ended
    by_rebuild = [one for one in world.activities("unmerged") if one.by == REBUILD]
    assert sorted(one.issue for one in by_rebuild) == ([] if is_ended else sorted([id_of(1), id_of(2)]))


async def test_a_merge_that_the_activity_has_and_no_row_is_undone_and_told() -> None:
    """An earlier rebuild emptied the topic before the writer had read it."""
    world, _ = await under_way(("merge", 1, 2), batches=0)
    await world.settle()
    world.memory.topics = {tp: log for tp, log in world.memory.topics.items() if tp[0] != "issues"}
    assert rebuild(world) == [Pair(id_of(1), id_of(2))]
    await world.settle()
    check(world)
    assert (world.issue(2).merged_into, world.issue(1).events) == (None, 1)


@pytest.mark.parametrize("kinds", [("merge",), ("merge", "unmerge")])
async def test_a_command_that_was_under_way_changes_nothing_when_it_is_given_again(
    kinds: tuple[str, ...],
) -> None:
    for batches in range(1, 4):
        world, ids = await under_way(*((kind, 1, 2) for kind in kinds), batches=batches)
        for _ in range(2):
            rebuild(world)
            data = {"issues": [id_of(2)]} if kinds[-1] == "merge" else {"fingerprints": [hex64(2)]}
            before = world.issue(2).merged_into
            world.ask(id_of(1), kinds[-1], data, ids[-1])
            await world.settle()
            check(world)
            assert world.issue(2).merged_into == before
            assert ids[-1] in world.issue(1).life.commands


@pytest.mark.parametrize("is_applied", [True, False])
async def test_a_command_that_was_sent_on_to_the_whole_is_not_given_to_the_released_part_again(
    is_applied: bool,
) -> None:
    world, _ = await under_way(("merge", 1, 2), batches=0)
    await world.settle()
    unmerge = (id_of(1), "unmerge", {"fingerprints": [hex64(2)]})
    noted = len(seen := world.log("seen", partition_of(id_of(2))))
    if is_applied:
        world.ask(id_of(2), "comment", {"text": "once"})
        await world.settle()
        world.ask(*unmerge)
        await world.work(1)
    else:
        world.ask(*unmerge)
        world.ask(id_of(2), "comment", {"text": "once"})
        await world.work(1)
    assert len(world.activities("commented")) == is_applied
    # The part's process was killed before it noted its position.
    del seen[noted:]
    assert rebuild(world) == [Pair(id_of(1), id_of(2))]
    await world.settle()
    check(world)
    assert [one.issue for one in world.activities("commented")] == [id_of(1)]


async def test_a_former_part_makes_no_forwarded_command_again_where_the_positions_are_lost() -> None:
    world, _ = await under_way(("merge", 1, 2), batches=0)
    await world.settle()
    world.ask(id_of(2), "comment", {"text": "once"})
    await world.settle()
    world.ask(id_of(1), "unmerge", {"fingerprints": [hex64(2)]})
    await world.settle()
    for partition in range(PARTITIONS):
        world.log("seen", partition).clear()
    assert rebuild(world) == []
    await world.settle()
    check(world)
    assert [one.issue for one in world.activities("commented")] == [id_of(1)]


@pytest.mark.parametrize("batches", range(1, 8))
async def test_crossing_merges_that_are_given_again_after_a_rebuild_are_refused_again(batches: int) -> None:
    world, ids = World(), list[str]()
    crossing = ((1, 3), (3, 1))  # of one partition
    for fingerprint in FINGERPRINTS:
        world.send(fingerprint, increment(fingerprint))
    await world.settle()
    for whole, part in crossing:
        ids.append(world.ask(id_of(whole), "merge", {"issues": [id_of(part)]}))
    for _ in range(batches):
        await world.work(1)
    rebuild(world)
    for (whole, part), command in zip(crossing, ids, strict=True):
        world.ask(id_of(whole), "merge", {"issues": [id_of(part)]}, command)
    await world.settle()
    check(world)


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


@pytest.mark.parametrize("noted", [0, 1, 2])
async def test_an_event_after_a_fix_reopens_though_the_command_is_read_again(noted: int) -> None:
    """`noted` positions in the log are known: a rebuild that was killed has emptied `seen`."""
    world = World()
    world.send(1, increment(1))
    await world.settle()
    world.ask(id_of(1), "update", {"status": "resolved"})
    await world.settle()
    world.send(1, increment(1, ms=START + 1000))
    await world.settle()
    assert [one.kind for one in world.activities()] == ["created", "resolved", "regressed"]
    del world.log("seen", partition_of(id_of(1)))[noted:]
    rebuild(world)
    await world.settle()
    assert (world.issue(1).status, world.issue(1).regressed) == ("open", True)


@pytest.mark.parametrize("offset", [7, 123_456_789])
async def test_what_a_part_has_received_is_no_command_of_its_whole(offset: int) -> None:
    world = World()
    world.send(1, increment(1))
    await world.settle()
    regressed = StoredChange(START, f"{id_of(1)}-0-{offset}-{id_of(2)}-regressed", "regressed", {})
    row = stored_row(world.issue(1))
    (record,) = rebuilt(
        [], [row], {row.issue: [regressed]}, Covered({}, {}, Unread()), SOURCES, iso(START)
    ).records
    assert record.life.commands == ()


@pytest.mark.parametrize("known", [(), (1,), (2,)])
@pytest.mark.parametrize("kind", get_args(SignalKind))
def test_a_signal_of_an_issue_of_which_nothing_is_stored_changes_nothing(
    kind: SignalKind, known: tuple[int, ...]
) -> None:
    member = {id_of(3): Member(hex64(3), "b", 1, Figures())}
    leave = Signal(kind="leave", issue=id_of(2), sender=id_of(1), project_id=str(PROJECT), join="c")
    signals = [
        leave,
        replace(leave, kind=kind, members=member),
        replace(leave, kind=kind, issue=id_of(1), sender=id_of(2), members=member),
    ]
    reported = StoredChange(START, f"{id_of(1)}-{'u' * 36}-unmerged", "unmerged", {"issues": [id_of(2)]})
    command = Command("u" * 36, id_of(1), str(PROJECT), "unmerge", "ann", iso(START))
    unread = Unread()
    for delta in (DeltaRecord(command=command), *(DeltaRecord(signal=signal) for signal in signals)):
        unread.add(encode_json(delta))
    covered = Covered({0: 0}, {0: 0}, unread)
    counts = [stored_counts(fingerprint, [increment(fingerprint)]) for fingerprint in known]
    records = rebuilt(counts, [], {int(id_of(1), 16): [reported]}, covered, SOURCES, iso(START)).records
    assert [record.id for record in records] == [id_of(fingerprint) for fingerprint in known]
    assert not any(record.merged_into or record.life.members for record in records)


def test_an_issue_that_is_opened_by_a_rebuild_has_the_owner_of_its_unread_increments() -> None:
    stored_issues = [stored_counts(fingerprint, [increment(fingerprint)]) for fingerprint in (1, 2, 3)]
    unread = Unread()
    unread.owners |= {int(id_of(1), 16): "zoe", int(id_of(2), 16): "zoe"}
    covered = Covered({0: 0}, {0: 0}, unread)
    taken = StoredChange(START, f"{id_of(2)}-{'u' * 36}-assigned", "assigned", {"assignee": "ann"})
    records = rebuilt(stored_issues, [], {int(id_of(2), 16): [taken]}, covered, SOURCES, iso(START)).records
    assert [record.assignee for record in records] == ["zoe", "ann", None]


async def test_the_first_unread_increment_of_an_issue_names_its_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.send(1, increment(1, owner="zoe"), increment(1, owner="ann"))
    world.send(2, increment(2), increment(2, owner="ann"))
    world.ask(id_of(1), "comment", {"text": "x"})
    logs = [world.log("issue-deltas", partition) for partition in range(PARTITIONS)]

    async def in_order(*_: Any) -> AsyncIterator[Message]:
        for message in itertools.chain(*logs):
            yield message

    consumer = AsyncMock(assign=Mock())
    consumer.__aenter__.return_value = consumer
    monkeypatch.setattr("rebuild.from_clickhouse.open_consumer", lambda _: consumer)
    monkeypatch.setattr("rebuild.from_clickhouse.records_before", in_order)
    unread = await _unread(ProcessorsSettings(kafka_bootstrap="x:1"), {})
    assert [command.kind for command in unread.commands] == ["comment"]
    assert unread.owners == {int(id_of(1), 16): "zoe", int(id_of(2), 16): ""}


@given(steps, st.integers(0, 1 << 32))
# The unmerge is sent on three times, and the last ones are read after a part has joined that the first one
# could not release.
@example([("event", 1, 1), ("merge", 1, {2, 3, 4}), ("unmerge", 2, {1, 2, 3}), *[("event", 1, 1)] * 3], 150)
# The rebuild's clock is ahead of the later merge's.
@example([*[("event", 1, 1)] * 2, ("merge", 1, {1, 2, 3, 4}), ("event", 1, 1), ("merge", 4, {1, 2, 3}),
          *[("event", 2, 1)] * 2, *[("event", 1, 1)] * 2], 3774)  # fmt: skip
# One command asks for the merge of two issues into each other: it was sent on to the one that has the other.
@example([*[("event", 1, 1)] * 4, ("merge", 3, {1}), ("merge", 1, {2}), ("merge", 1, {1, 2, 3}),
          *[("event", 1, 1)] * 2], 59047)  # fmt: skip
async def test_both_sides_agree_and_all_is_applied_though_issues_are_rebuilt_meanwhile(
    history: list[tuple[Any, ...]], seed: int
) -> None:
    """However often, and wherever processes were killed."""
    world, luck = World(), random.Random(seed)
    for fingerprint in FINGERPRINTS:
        world.send(fingerprint, increment(fingerprint))
    await world.settle()
    for at, (kind, issue, named) in enumerate(history):
        # Others may have no events yet, and then can't be asked for. A rebuild knows events that the refusal didn't.
        what = named & set(FINGERPRINTS) if kind == "unmerge" else named
        ask(world, (kind, issue, what), at)
        await work_a_little(world, luck)
        if luck.random() < 0.3:
            for killed_before in luck.sample(WRITTEN, luck.randrange(2)):
                rebuild(world, killed_before)
            rebuild(world)
    rebuild(world)
    await world.settle(limit=luck.randrange(1, 9))
    check(world)
