"""Records that can't be processed, and the stream for other teams."""

import json
from uuid import UUID

import msgspec
from aiokafka import AIOKafkaProducer

from schemas.chunks import ChunkEvent, encode_chunk
from schemas.dead_letters import from_headers
from schemas.ids import uuid7
from schemas.topics import Topic
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import HEADERS, NOW_MS, Feed, event, produce
from tests.integration.processors.test_exactness import assert_exact, backlog, until_counted

DEAD = Topic.DEAD_LETTERS.title


async def test_a_poisoned_record_is_dead_lettered_and_the_stream_goes_on(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=1)
    good = backlog(feed, 40)
    bad = [(0, b"\xc1 not msgpack"), (1, encode_chunk([{"not": "events"}]))]
    await produce(kafka_bootstrap, prefix + "events", good[:20] + bad + good[20:])
    worker = start()
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    # What is good and what is bad of a take is sent at the same time: the one may be seen before the other.
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == len(bad))
    letters = await readback.read(kafka_bootstrap, prefix + DEAD)
    assert sorted(r.value for r in letters) == sorted(value for _, value in bad)
    for letter in letters:
        forwarded, headers = from_headers(letter.headers)
        assert (forwarded.topic, forwarded.stage) == (prefix + "events", "grouper")
        assert headers == HEADERS
        assert "not a chunk" in forwarded.reason
    await assert_exact(kafka_bootstrap, prefix, feed)


async def test_events_that_grow_when_they_are_grouped_stop_nobody(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    """A client may send any fingerprint.

    Five events of a megabyte, which compress to nothing, make a record of five megabytes.
    """
    feed = Feed(PARTITIONS, seed=15)
    long = [
        event(str(uuid7(NOW_MS)), 1, NOW_MS)
        | {"fingerprint": [f"{n} {part} {'a' * 980}" for part in range(990)]}
        for n in range(5)
    ]
    chunk = [ChunkEvent(7, UUID(one["id"]).bytes, NOW_MS, "test/1", msgspec.json.encode(one)) for one in long]
    await produce(kafka_bootstrap, prefix + "events", [(0, encode_chunk(chunk)), *backlog(feed, 20)])
    worker = start()
    feed.sent += len(chunk)
    feed.ids |= {(one.project, one.id) for one in chunk}
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    await assert_exact(kafka_bootstrap, prefix, feed)


async def test_a_bad_event_is_dead_lettered_alone(kafka_bootstrap: str, prefix: str, start: Start) -> None:
    feed = Feed(1, seed=1)
    feed.chunk(0, 3, repeats=0.0)
    whole = [ChunkEvent(7, bytes([n]) * 16, NOW_MS, "test/1", b"") for n in (1, 2)]
    await produce(kafka_bootstrap, prefix + "events", [(0, encode_chunk(whole))])
    worker = start()
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == 2)
    letters = await readback.read(kafka_bootstrap, prefix + DEAD)
    assert [r.value for r in letters] == [encode_chunk([one]) for one in whole]
    assert await readback.outcomes(kafka_bootstrap, prefix + "outcomes") == {"accepted": 2, "deadLettered": 2}


async def test_a_delta_that_cannot_be_applied_is_dead_lettered(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    command = {"command": {"id": "1", "issue": "0", "projectId": "1", "kind": "dance", "by": "x", "at": "y"}}
    producer = AIOKafkaProducer(bootstrap_servers=kafka_bootstrap)
    await producer.start()
    for value in (b"{", json.dumps(command).encode()):
        await producer.send_and_wait(prefix + "issue-deltas", value, partition=2)
    await producer.stop()
    worker = start()
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == 2)
    reasons = [from_headers(r.headers)[0].reason for r in await readback.read(kafka_bootstrap, prefix + DEAD)]
    assert "no such issue" in reasons


async def test_a_worker_stops_when_most_recent_records_are_bad_and_stops_again_when_it_is_started_again(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    await produce(kafka_bootstrap, prefix + "events", [(0, b"\xc1")] * 300)
    worker = start()
    letters = []
    for _ in range(3):
        assert worker.wait() == 1
        assert "records can't be processed" in worker.log.read_text().splitlines()[-1]
        letters.append(len(await readback.read(kafka_bootstrap, prefix + DEAD)))
        worker.start()
    assert letters[0] < 100
    assert letters == [letters[0]] * 3


async def test_each_event_is_a_record_of_its_own_where_that_is_asked_for(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=9)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 8, 5))
    worker = start(SVC_GROUPED_EVENTS="true")
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    records = await readback.read(kafka_bootstrap, prefix + "grouped-events")
    events = [json.loads(r.value) for r in records]
    assert {r.key.decode() for r in records} == {f"{e['projectId']}/{e['event']['id']}" for e in events}
    assert len(events) == len(feed.ids)
    issues = await readback.issues(kafka_bootstrap, prefix + "issues")
    assert {e["issueId"] for e in events} == set(issues)
    places = {
        (c.partition, c.offset) for c in await readback.grouped_once(kafka_bootstrap, prefix + "grouped")
    }
    assert {dict(r.headers)["source"] for r in records} == {b"%d/%d" % source for source in places}
    assert set(events[0]) == {"projectId", "issueId", "fingerprint", "grouping", "receivedAt", "sdk", "event"}


async def test_a_missing_topic_is_waited_for_and_named(
    kafka_bootstrap: str, topic_prefix: str, prefix: str, start: Start
) -> None:
    worker = start(SVC_TOPIC_PREFIX=f"{topic_prefix}none.")
    await eventually(lambda: "svc migrate" in worker.log.read_text())
    assert not worker.ready()
    assert worker.stop() == 0
