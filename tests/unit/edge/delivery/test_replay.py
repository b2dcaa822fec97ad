"""Replay of quarantined segments.

Every readable event is sent to its partition, and nothing is replayed for ever.
"""

import asyncio
from pathlib import Path

import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from broker.errors import SinkUnavailable
from edge.delivery import segments
from edge.delivery.chunker import EventTuple
from edge.delivery.segment_replay import QuarantinedSegment, listed, replay
from schemas.chunks import decode_chunk, encode_chunk
from schemas.ids import event_partition
from tests.unit.edge.delivery.test_kafka_sink import EVENTS, Broker, event, sink_on


def put(root: Path, ending: str, *chunks: list[EventTuple], tail: bytes = b"", number: int = 1) -> Path:
    """A segment of worker 0 that was quarantined."""
    folder = root / "0"
    folder.mkdir(exist_ok=True)
    path = folder / (segments.name(number, 1.0) + ending)
    path.write_bytes(b"".join(segments.frame(encode_chunk(chunk)) for chunk in chunks) + tail)
    return path


async def replayed(root: Path, broker: Broker) -> list[QuarantinedSegment]:
    found: list[QuarantinedSegment] = []
    async with sink_on(broker) as sink:
        await replay(root, sink, 60.0, found.append)
    return found


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "0").iterdir())


async def test_segment_whose_events_the_topic_takes_now_is_sent_to_their_partitions_and_removed(
    tmp_path: Path,
) -> None:
    given = [event() for _ in range(20)]
    put(tmp_path, ".too-large", given[:10], given[10:])
    broker = Broker()
    (row,) = await replayed(tmp_path, broker)
    assert (row.reason, row.sent, row.too_large, row.is_done) == ("too-large", 20, 0, True)
    assert sorted(broker.ids()) == sorted(each[1] for each in given)
    for _, partition, value in broker.records:
        assert {event_partition(7, each.id, 4) for each in decode_chunk(value)} == {partition}
    assert names(tmp_path) == []


async def test_unreadable_bytes_stay_and_are_not_replayed_again(tmp_path: Path) -> None:
    given = event()
    path = put(tmp_path, ".damaged", [given], tail=b"?" * 30)
    content = path.read_bytes()
    broker = Broker()
    (row,) = await replayed(tmp_path, broker)
    assert (row.sent, row.unreadable, row.is_done) == (1, 30, True)
    assert names(tmp_path) == [path.name + ".replayed"]
    assert path.with_name(path.name + ".replayed").read_bytes() == content
    assert await replayed(tmp_path, broker) == []
    assert broker.ids() == [given[1]]
    (row,) = listed(tmp_path)
    assert (row.reason, row.replayed, row.events, row.unreadable) == ("damaged", True, 1, 30)


async def test_event_that_is_still_too_large_stays_where_it_is(tmp_path: Path) -> None:
    small, large = event(), event(5000)
    path = put(tmp_path, ".too-large", [small, large])
    broker = Broker()
    broker.largest = 1000
    (row,) = await replayed(tmp_path, broker)
    assert (row.sent, row.too_large, row.is_done) == (1, 1, False)
    assert set(broker.ids()) == {small[1]}
    broker.largest = None
    (row,) = await replayed(tmp_path, broker)
    assert row.is_done
    assert large[1] in broker.ids()
    assert not path.exists()


async def test_replay_that_is_killed_before_the_acknowledgement_keeps_the_segment(tmp_path: Path) -> None:
    path = put(tmp_path, ".damaged", [event()])
    broker = Broker()
    broker.silent = True
    async with sink_on(broker) as sink:
        replaying = asyncio.create_task(replay(tmp_path, sink, 60, lambda _: None))
        await asyncio.sleep(0)
        replaying.cancel()
        await asyncio.wait([replaying])
    assert path.exists()
    broker.silent = False
    (row,) = await replayed(tmp_path, broker)
    assert row.sent == 1


async def test_missing_right_ends_the_replay_and_keeps_the_segment(tmp_path: Path) -> None:
    path = put(tmp_path, ".damaged", [event()])
    broker = Broker()
    broker.errors[EVENTS] = TopicAuthorizationFailedError(EVENTS)
    with pytest.raises(SinkUnavailable, match="TopicAuthorizationFailedError"):
        await replayed(tmp_path, broker)
    assert path.exists()


async def test_unreadable_segment_is_reported_and_delays_no_other(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / (segments.name(1, 1.0) + ".damaged")).mkdir()
    put(tmp_path, ".unfinished", [event()], number=2)
    first, second = await replayed(tmp_path, Broker())
    assert first.error
    assert not first.is_done
    assert (second.reason, second.sent) == ("unfinished", 1)


def test_waiting_segments_and_other_files_are_not_listed(tmp_path: Path) -> None:
    put(tmp_path, "", [event()])
    put(tmp_path, ".other", [event()])
    (tmp_path / "0" / "notes.spool.damaged").write_bytes(b"")
    assert listed(tmp_path) == []
