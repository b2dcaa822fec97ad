"""Issues, activity and outcomes into ClickHouse: at least once, into tables where the same row twice is one row."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pyarrow as pa
from msgspec import Struct

from broker.client import name_of, new_consumer
from broker.commit import commit, leave
from broker.errors import CommitFailedError, IllegalStateError, KafkaError
from broker.types import Consumer, Record, TopicPartition
from schemas.health import Health
from schemas.issues import decode_activity, decode_issue, decode_outcomes
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.client import Client
from storage.writer.blocks import RejectedRecord
from storage.writer.dead_letters import DeadLetterWriter
from storage.writer.flush_policy import FlushPolicy, LastFlush
from storage.writer.inserter import Inserter, RefusedData
from storage.writer.metrics import WriterMetrics
from storage.writer.record_rows import (
    ISSUE_ACTIVITY,
    ISSUES,
    OUTCOMES,
    Row,
    activity_row,
    issue_row,
    newest,
    outcome_row,
    table,
)

log = logging.getLogger(__name__)

_READ_RECORDS: Final = 5000
_READ_SECONDS: Final = 0.2
_RESTART_SECONDS: Final = 0.5
_SESSION_MS: Final = 10_000
_POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
_FORGET: Final = """
    INSERT INTO issues SELECT * REPLACE (version + 1 AS version, 1 AS deleted)
    FROM (SELECT * FROM issues FINAL WHERE issue_id IN {issues:Array(UInt64)} AND deleted = 0)"""


class RecordTopic(Struct, frozen=True):
    """One topic, the table that it fills and how: `rows` gives the rows of a value, `distinct` leaves out older ones."""

    topic: Topic
    table: str
    schema: pa.Schema
    rows: Callable[[bytes], list[Row]]
    distinct: Callable[[Iterable[Row]], list[Row]] = list


def _newest_issues(rows: Iterable[Row]) -> list[Row]:
    return newest(rows, key=ISSUES.get_field_index("issue_id"), version=ISSUES.get_field_index("version"))


KINDS: Final = (
    RecordTopic(
        Topic.ISSUES, "issues", ISSUES, lambda value: [issue_row(decode_issue(value))], _newest_issues
    ),
    RecordTopic(
        Topic.ISSUE_ACTIVITY,
        "issue_activity",
        ISSUE_ACTIVITY,
        lambda value: [activity_row(decode_activity(value))],
    ),
    RecordTopic(
        Topic.OUTCOMES,
        "outcomes",
        OUTCOMES,
        lambda value: [outcome_row(one) for one in decode_outcomes(value)],
    ),
)


class RecordsStage:
    """Reads the topics of `KINDS` as one member of a group of their own, inserts, then commits."""

    def __init__(
        self,
        settings: WriterSettings,
        inserter: Inserter,
        letters: DeadLetterWriter,
        pace: FlushPolicy,
        health: Health,
        metrics: WriterMetrics,
    ) -> None:
        self._settings = settings
        self._inserter = inserter
        self._letters = letters
        self._pace = pace
        self._health = health
        self._metrics = metrics
        self._kinds = {name_of(settings, kind.topic): kind for kind in KINDS}
        self._stopping = False

    def stop(self) -> None:
        """Return from `run` after the inserts under way."""
        self._stopping = True

    async def run(self) -> None:
        """Write until stopped."""
        self._health.set("records", ok=False, detail="joining the group")
        while not self._stopping:
            consumer = self._consumer()
            try:
                await consumer.start()
                consumer.subscribe(list(self._kinds))
                self._health.set("records", ok=True)
                await self._write(consumer)
            except (CommitFailedError, IllegalStateError):
                log.info("the group of the records has changed")
            except (KafkaError, OSError) as error:
                self._health.set("records", ok=False, detail=f"Kafka: {error}")
                log.warning("the records' session ends: %s", error)
                await asyncio.sleep(_RESTART_SECONDS)
            finally:
                await leave(consumer)

    def _consumer(self) -> Consumer:
        group = f"{self._settings.writer_group}-records"
        return new_consumer(
            self._settings,
            group_id=group,
            group_instance_id=f"{group}-{self._settings.writer_worker}",
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=2000,
            max_poll_interval_ms=_POLL_INTERVAL_MS,
            fetch_max_wait_ms=200,
        )

    async def _write(self, consumer: Consumer) -> None:
        last = LastFlush()
        while not self._stopping:
            got = await self._gather(consumer, last)
            if not got:
                continue
            started = time.monotonic()
            for topic, records in _by_topic(got).items():
                await self._insert(topic, records)
            ended = time.monotonic()
            last = LastFlush(ended - started, sum(map(len, got.values())), ended)
            # A rebalance during the insert may have taken some away; what is committed then is refused.
            for place in got.keys() & consumer.assignment():
                records = got[place]
                behind = max(0, (consumer.highwater(place) or 0) - records[-1].offset - 1)
                self._metrics.lag.labels(place.topic, place.partition).set(behind)
            await commit(consumer, {place: records[-1].offset + 1 for place, records in got.items()})

    async def _gather(self, consumer: Consumer, last: LastFlush) -> dict[TopicPartition, list[Record]]:
        got: dict[TopicPartition, list[Record]] = {}
        since = time.monotonic()
        while not self._stopping:
            count = sum(map(len, got.values()))
            remaining = self._pace.remaining(count, 0, time.monotonic() - since, last)
            if got and remaining <= 0:
                break
            timeout = min(remaining, _READ_SECONDS) if got else _READ_SECONDS
            more = await consumer.getmany(timeout_ms=max(1, int(timeout * 1000)), max_records=_READ_RECORDS)
            if more and not got:
                since = time.monotonic()
                last = self._pace.recent(last, since)
            for place, records in more.items():
                got.setdefault(place, []).extend(records)
        return got

    async def _insert(self, topic: str, records: list[Record]) -> None:
        kind = self._kinds[topic]
        rows: list[tuple[Row, Record]] = []
        refused: list[RejectedRecord] = []
        gone: list[int] = []
        for record in records:
            try:
                if record.value is None:
                    gone.append(int(record.key or b"", 16))
                else:
                    rows += [(row, record) for row in kind.rows(record.value)]
            except ValueError as error:
                refused.append(_refused(record, "undecodable", str(error)))
        kept = kind.distinct(row for row, _ in rows)
        if kept:
            refused += await self._insert_rows(kind, kept, rows, _token(topic, records))
        if gone and kind.topic is Topic.ISSUES:
            await self._inserter.run(lambda client: _forget(client, gone))
        await self._letters.send(topic, refused)

    async def _insert_rows(
        self, kind: RecordTopic, rows: list[Row], origins: list[tuple[Row, Record]], token: str
    ) -> list[RejectedRecord]:
        """Insert rows; those that are refused are found by halving."""
        try:
            await self._inserter.insert(kind.table, table(kind.schema, rows), token)
        except (RefusedData, ValueError, OverflowError) as error:
            if len(rows) == 1:
                record = next(record for row, record in origins if row is rows[0])
                return [_refused(record, "refused", str(error))]
            middle = len(rows) // 2
            first = await self._insert_rows(kind, rows[:middle], origins, f"{token}/0")
            return first + await self._insert_rows(kind, rows[middle:], origins, f"{token}/1")
        return []


def _by_topic(got: Mapping[TopicPartition, list[Record]]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for place in sorted(got):
        found.setdefault(place.topic, []).extend(got[place])
    return found


def _token(topic: str, records: list[Record]) -> str:
    spans: dict[int, list[int]] = {}
    for record in records:
        spans.setdefault(record.partition, []).append(record.offset)
    return f"{topic}/" + ",".join(f"{p}:{o[0]}-{o[-1]}" for p, o in sorted(spans.items()))


def _refused(record: Record, kind: str, reason: str) -> RejectedRecord:
    value, headers = record.value or b"", tuple(record.headers)
    return RejectedRecord(record.partition, record.offset, kind, reason, value, headers)


def _forget(client: Client, issues: list[int]) -> None:
    client.command(_FORGET, parameters={"issues": issues})
