"""The last process to open a partition owns it, and the log says which one that is."""

from collections.abc import Sequence

import pytest

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.errors import PartitionsLost
from broker.message import Message
from processors.aggregator.aggregator_stage import supersedes
from processors.changelog import Changelog, epoch_of
from processors.grouper.dedup_log import entry_key


class Log(BatchProducer):
    """One partition of a topic, written by several producers."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def write(
        self,
        topic: str,  # noqa: ARG002
        partition: int,  # noqa: ARG002
        messages: Sequence[Message],
    ) -> list[WrittenBatch]:
        first = len(self.messages)
        self.messages += messages
        return [WrittenBatch(first, len(self.messages) - 1)]

    def compacted(self) -> list[tuple[int, Message]]:
        """The records that compaction keeps, with their offsets."""
        last = {message.key: offset for offset, message in enumerate(self.messages)}
        return [(offset, m) for offset, m in enumerate(self.messages) if last[m.key] == offset]


def read(changelog: Changelog, records: Sequence[tuple[int, Message]]) -> dict[bytes, bytes]:
    """The result of a recovery from records."""
    part: dict[bytes, bytes] = {}
    for offset, (key, value, headers) in records:
        assert key is not None
        if changelog.log(0).read(offset, key, value, headers, part.get(key)):
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value
    return part


def recovered(log: Log) -> dict[bytes, bytes]:
    return read(Changelog("seen", log), list(enumerate(log.messages)))


async def opened(log: Log, owner: str = "a") -> Changelog:
    changelog = Changelog("seen", log)
    await changelog.open(0, owner)
    return changelog


async def test_an_owner_that_wakes_up_after_another_opened_writes_once_and_no_reader_takes_it() -> None:
    log = Log()
    old = await opened(log)
    await old.write(0, [(b"k", b"1")])
    new = await opened(log, "b")
    with pytest.raises(PartitionsLost):
        await old.write(0, [(b"k", b"old")])
    assert recovered(log) == {b"k": b"1"}
    with pytest.raises(PartitionsLost):
        await new.write(0, [(b"m", b"2")])
    assert recovered(log) == {b"k": b"1", b"m": b"2"}


async def test_a_late_entry_never_replaces_a_newer_owners_in_a_compaction() -> None:
    log = Log()
    old = await opened(log)
    new = await opened(log, "b")
    old_key, new_key = (entry_key(0, 1, 3, changelog.log(0).epoch) for changelog in (old, new))
    await new.write(0, [(new_key, b"new")])
    with pytest.raises(PartitionsLost):
        await old.write(0, [(old_key, b"old")])
    assert read(Changelog("seen", log), log.compacted()) == {new_key: b"new"}


async def test_a_dropped_record_is_superseded_before_compaction_leaves_it_alone() -> None:
    log = Log()
    old = await opened(log)
    await old.write(0, [(b"k", b"1")])
    await opened(log, "b")
    late = old.log(0).headers()
    await log.write("seen", 0, [Message(b"k", b"late", late), Message(b"unknown", b"late", late)])
    third = await opened(log, "c")
    part = read(third, list(enumerate(log.messages)))
    corrections = third.corrections(0, part)
    assert corrections == [(b"k", b"1"), (b"unknown", None)]
    await third.write(0, corrections)
    assert third.corrections(0, part) == []
    assert read(Changelog("seen", log), log.compacted()) == {b"k": b"1"}


async def test_an_opening_that_was_compacted_away_fences_by_the_records_of_its_epoch() -> None:
    log = Log()
    old = await opened(log)
    new = await opened(log, "b")
    await new.write(0, [(b"k", b"new")])
    await log.write("seen", 0, [Message(b"m", b"late", old.log(0).headers())])
    await opened(log, "c")
    assert read(Changelog("seen", log), log.compacted()) == {b"k": b"new"}


async def test_records_without_an_epoch_are_read_as_they_stand() -> None:
    log = Log()
    await log.write("seen", 0, [Message(b"k", b"before")])
    await opened(log)
    await log.write("seen", 0, [Message(b"m", b"rebuilt")])
    assert recovered(log) == {b"k": b"before", b"m": b"rebuilt"}


async def test_without_an_opening_only_a_newer_value_supersedes() -> None:
    log = Log()
    issues = Changelog("issues", log, supersedes)
    values = [b'{"version":2}', b'{"version":1}']
    await issues.write(0, [(b"i", values[0])])
    await log.write("issues", 0, [Message(b"i", values[1])])
    reader = Changelog("issues", log, supersedes)
    part = read(reader, list(enumerate(log.messages)))
    assert part == {b"i": values[0]}
    assert reader.corrections(0, part) == [(b"i", values[0])]
    with pytest.raises(PartitionsLost):
        await issues.write(0, [(b"i", b'{"version":3}')])


async def test_a_tombstone_that_a_stranger_wrote_removes_no_value_and_is_written_over() -> None:
    log = Log()
    await Changelog("issues", log, supersedes).write(0, [(b"i", b'{"version":2}')])
    await log.write("issues", 0, [Message(b"i", None)])
    reader = Changelog("issues", log, supersedes)
    part = read(reader, list(enumerate(log.messages)))
    assert part == {b"i": b'{"version":2}'}
    assert reader.corrections(0, part) == [(b"i", b'{"version":2}')]


async def test_a_partition_that_left_is_forgotten_with_its_epoch() -> None:
    log = Log()
    changelog = await opened(log)
    changelog.hold(set())
    assert changelog.log(0).epoch is None


@pytest.mark.parametrize(
    ("headers", "epoch"),
    [(None, None), ([], None), ([("epoch", b"7")], 7), ({"epoch": b"7"}, 7), ([("source", b"1/2")], None)],
)
def test_the_epoch_of_a_record(headers: object, epoch: int | None) -> None:
    assert epoch_of(headers) == epoch
