"""`svc notify` on a real broker: each cause is sent once, through all crashes."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from broker.client import open_producer
from control.project_edits import create
from notify.history import NotificationHistory
from schemas.issues import Activity, ActivityKind, IssueRecord, Subject, encode_json
from schemas.notifications import CAUSES, ChannelTestRecord, NotificationRule
from schemas.projects import encode_project
from schemas.settings import KafkaSettings
from schemas.times import iso
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS
from tests.integration.processors.process import WorkerProcess
from tests.webhook_receiver import SECRET, Receiver

NOW_MS = 1_790_000_000_000
SUBJECT = Subject()
RULE = NotificationRule("a" * 16, "everything", CAUSES, ("hook",), most_per_hour=0)
StartNotify = Callable[..., WorkerProcess]


@pytest.fixture
def start_notify(kafka_bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[StartNotify]:
    """Starts `svc notify` with one webhook."""
    processes: list[WorkerProcess] = []

    def begin(receiver: Receiver, name: str = "0", seconds: str = "1") -> WorkerProcess:
        channels = {"hook": {"webhook": receiver.url, "secret": SECRET}}
        process = WorkerProcess(
            kafka_bootstrap,
            prefix,
            tmp_path,
            name,
            module="cli.notify",
            SVC_NOTIFY_CHANNELS=json.dumps(channels),
            SVC_NOTIFY_GROUP=f"{prefix}notify",
            SVC_NOTIFY_SECONDS=seconds,
            SVC_DASHBOARD_URL="https://svc.example.com/",
        ).start()
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.running:
            process.kill()


class Source:
    """Writes projects and activities, as dashboard and processors do."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._settings = KafkaSettings(kafka_bootstrap=bootstrap, topic_prefix=prefix)
        self._prefix = prefix
        self.project = create("shop", now_ms=NOW_MS)

    async def rules(self, *rules: NotificationRule) -> None:
        self.project = replace(self.project, notification_rules=tuple(rules))
        await self._write("projects", [(self.project.id.encode(), encode_project(self.project), 0)])

    async def happen(
        self, ids: Sequence[str], kind: ActivityKind = "created", subject: Subject | None = SUBJECT
    ) -> None:
        activities = [
            Activity(
                one,
                f"{number:016x}",
                self.project.id,
                kind,
                "system",
                iso(NOW_MS),
                {"release": "a@1+1"},
                subject,
            )
            for number, one in enumerate(ids)
        ]
        records = [
            (one.issue.encode(), encode_json(one), number % PARTITIONS)
            for number, one in enumerate(activities)
        ]
        await self._write("issue-activity", records)
        await self._write(
            "issues",
            [
                (key, self._record(key.decode()), number % PARTITIONS)
                for number, (key, *_) in enumerate(records)
            ],
        )

    def _record(self, issue: str) -> bytes:
        return encode_json(
            IssueRecord(
                id=issue,
                project_id=self.project.id,
                fingerprints=(issue,),
                error_type="E",
                message="no cart",
                culprit="pay in cart.py",
                first_seen_ms=NOW_MS,
                last_seen_ms=NOW_MS,
            )
        )

    async def test_channel(self, channel: str, name: str) -> None:
        record = ChannelTestRecord(NOW_MS, name, self.project.id, channel)
        await NotificationHistory(self._settings).append(record)

    async def _write(self, topic: str, records: Sequence[tuple[bytes, bytes, int]]) -> None:
        async with open_producer(self._settings) as producer:
            for key, value, partition in records:
                await producer.send(self._prefix + topic, value, key=key, partition=partition)


@pytest.fixture
def source(kafka_bootstrap: str, prefix: str) -> Source:
    return Source(kafka_bootstrap, prefix)


def leads(process: WorkerProcess) -> Callable[[], bool]:
    def led() -> bool:
        assert process.running, process.log.read_text()[-3000:]
        return "became leader at offset" in process.log.read_text() and process.ready()

    return led


async def test_activity_is_sent_immediately_with_its_reason_and_link(
    start_notify: StartNotify, source: Source
) -> None:
    await source.rules(replace(RULE, query="environment:prod", causes=("created", "escalated")))
    async with Receiver().listening() as receiver:
        process = start_notify(receiver)
        await eventually(leads(process))
        prod = Subject(error_type="E", release="a@1+1", environment="prod")
        await source.happen(["c-1"], subject=prod)
        await source.happen(["c-2"], subject=replace(prod, environment="test"))
        await source.happen(["c-3"], "seenInRelease", prod)
        await source.happen(["c-4"], subject=replace(prod, status="ignored"))
        # Activities of people have no subject.
        await source.happen(["c-5"], subject=None)
        await source.happen(["c-6"], "escalated", prod)
        await eventually(lambda: "c-6" in receiver.messages)
        for name in ("one", "one", "two"):
            await source.test_channel("hook", name)
        await eventually(lambda: {"c-1", "c-6", "test-two"} <= receiver.messages.keys())
        assert sorted(receiver.messages) == ["c-1", "c-6", "test-one", "test-two"]
        assert receiver.messages["test-one"]["project"]["name"] == "shop"
        message = receiver.messages["c-1"]
        assert message["project"] == {"id": source.project.id, "name": "shop"}
        assert message["rule"] == {"id": RULE.id, "name": RULE.name}
        issue = message["causes"][0]["issue"]
        assert (issue["errorType"], issue["message"], issue["culprit"]) == ("E", "no cart", "pay in cart.py")
        assert issue["url"] == f"https://svc.example.com/issues/{0:016x}"


@pytest.mark.slow
async def test_each_of_a_thousand_causes_leaves_under_one_id_while_processes_die_and_the_receiver_fails(
    start_notify: StartNotify, source: Source
) -> None:
    luck = random.Random(5)
    # With texts, those of records from before a restart would be awaited.
    await source.rules(replace(RULE, without_content=True))
    async with Receiver(bad=0.1).listening() as receiver:
        processes = [start_notify(receiver, str(number)) for number in range(2)]
        await eventually(lambda: any(leads(process)() for process in processes))
        wanted = [f"c-{number}" for number in range(1000)]
        for start in range(0, 1000, 100):
            # Repeats, as after a crash of a processor.
            await source.happen([*wanted[start : start + 100], *luck.sample(wanted[: start + 100], 10)])
            victim = luck.choice(processes)
            victim.kill()
            await asyncio.sleep(luck.random())  # the rhythm of the kills
            victim.start()
        receiver.bad = 0.0
        await eventually(lambda: len(receiver.causes) == 1000, 150)
        assert receiver.causes == Counter(wanted)
        assert set(receiver.requests) == set(wanted)


async def test_a_frozen_leader_that_wakes_up_sends_nothing_under_another_id(
    start_notify: StartNotify, source: Source
) -> None:
    digest = replace(RULE, id="b" * 16, name="digest", digest_minutes=1000)
    await source.rules(RULE, digest)
    async with Receiver().listening() as receiver:
        first = start_notify(receiver, "0")
        await eventually(leads(first))
        second = start_notify(receiver, "1")
        await source.happen(["c-1", "c-2"])
        await eventually(lambda: "c-2" in receiver.messages)
        first.freeze()
        await eventually(leads(second), 90)
        await source.happen(["c-3"])
        await eventually(lambda: "c-3" in receiver.messages)
        first.thaw()
        await source.happen(["c-4"])
        await eventually(lambda: "c-4" in receiver.messages)
        # It doesn't wait any longer.
        await source.rules(RULE, replace(digest, digest_minutes=0))
        digests = await eventually(
            lambda: [message for key, message in receiver.messages.items() if key.startswith("digest")]
        )
        assert len(digests) == 1
        assert sorted(cause["id"] for cause in digests[0]["causes"]) == ["c-1", "c-2", "c-3", "c-4"]
