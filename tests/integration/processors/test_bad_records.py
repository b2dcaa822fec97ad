"""Records that can't be processed, and the stream for other teams."""

import json

from aiokafka import AIOKafkaProducer

from schemas.chunks import encode_chunk
from schemas.dead_letters import from_headers
from schemas.topics import Topic
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import HEADERS, Feed, produce
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
    # Good and bad records of a take are sent concurrently: either may be seen first.
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == len(bad))
    letters = await readback.read(kafka_bootstrap, prefix + DEAD)
    assert sorted(r.value for r in letters) == sorted(value for _, value in bad)
    for letter in letters:
        forwarded, headers = from_headers(letter.headers)
        assert (forwarded.topic, forwarded.stage) == (prefix + "events", "grouper")
        assert headers == HEADERS
        assert "not a chunk" in forwarded.reason
    await assert_exact(kafka_bootstrap, prefix, feed)


async def test_a_delta_that_cannot_be_applied_is_dead_lettered(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    command = {"command": {"id": "1", "issue": "0", "projectId": "1", "kind": "dance", "by": "x", "at": "y"}}
    async with AIOKafkaProducer(bootstrap_servers=kafka_bootstrap) as producer:
        for value in (b"{", json.dumps(command).encode()):
            await producer.send_and_wait(prefix + "issue-deltas", value, partition=2)
    worker = start()
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == 2)
    reasons = [from_headers(r.headers)[0].reason for r in await readback.read(kafka_bootstrap, prefix + DEAD)]
    assert "no such issue" in reasons


async def test_each_event_is_one_record_if_the_setting_says_so(
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
    places = {(c.partition, c.offset) for c in await readback.grouped_once(kafka_bootstrap, prefix)}
    assert {dict(r.headers)["source"] for r in records} == {b"%d/%d" % source for source in places}
    assert set(events[0]) == {"projectId", "issueId", "fingerprint", "grouping", "receivedAt", "sdk", "event"}


async def test_a_missing_topic_is_waited_for_and_named(
    kafka_bootstrap: str, topic_prefix: str, prefix: str, start: Start
) -> None:
    worker = start(SVC_TOPIC_PREFIX=f"{topic_prefix}none.")
    await eventually(lambda: "svc migrate" in worker.log.read_text())
    assert not worker.ready()
    assert worker.stop() == 0
