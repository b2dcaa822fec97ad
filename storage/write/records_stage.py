"""The records' stage of the writer: inserts issues, activity, changes and outcomes at-least-once.

Their tables collapse equal rows.

1. *In*: records of the three topics from the committed offset on, until the flush policy ends the batch.
2. *Decide* (`record_rows`): rows; of an issue only the newest. Undecodable records are rejected.
3. *Publish*: insert the rows topic by topic, then the dead letters.
4. *Commit* the next offsets.

After a crash the batch, or another one with the same records, is inserted again; equal rows collapse. These
tables remember no tokens: a server that was killed in an insert may remember one without its rows, and would
drop the repeat.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

import numpy as np
from clickhouse_connect.driver.external import ExternalData

from broker.client import name_of, new_consumer
from broker.commit import commit, leave
from broker.errors import CommitFailedError, IllegalStateError, KafkaError
from broker.rights import RequiredRights, record_groups
from broker.send_errors import SendErrorKind, kind_of
from broker.startup import wait_for_rights
from broker.types import Consumer, Record, TopicPartition
from broker.waiting import until
from schemas.health import Health
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.client import Client
from storage.exactly_once.rejections import RejectedRecord
from storage.shards import Shard
from storage.tables.record_rows import Row, table
from storage.tables.record_topics import RECORD_TOPICS, RecordTopic
from storage.write.flush_policy import FlushPolicy, LastFlush
from storage.write.inserter import Inserter, RefusedData
from storage.write.rejected_records import DeadLetterWriter
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)

_READ_RECORDS: Final = 5000
_READ_SECONDS: Final = 0.5
_RESTART_SECONDS: Final = 0.5
_POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
# Of equal versions the row that was inserted last counts: the mark hides the issue, and the same record hides
# the mark again.
_DELETE: Final = """
    INSERT INTO issues SELECT * REPLACE (1 AS deleted)
    FROM (SELECT * FROM issues FINAL WHERE issue_id IN (SELECT issue_id FROM removed) AND deleted = 0)"""


class RecordsStage:
    """Reads the topics of `RECORD_TOPICS` in a separate consumer group.

    There is one stage for each shard, since each shard has all of these rows.
    """

    def __init__(
        self,
        settings: WriterSettings,
        shard: Shard,
        inserter: Inserter,
        dead_letters: DeadLetterWriter,
        policy: FlushPolicy,
        health: Health,
        metrics: WriterMetrics,
    ) -> None:
        self._settings = settings
        self._inserter = inserter
        self._dead_letters = dead_letters
        self._policy = policy
        self._health = health
        self._metrics = metrics
        self._kinds: dict[str, list[RecordTopic]] = {}
        for kind in RECORD_TOPICS:
            self._kinds.setdefault(name_of(settings, kind.topic), []).append(kind)
        self._group = record_groups(settings.writer_group, shard.count)[shard.number]
        self._part = shard.named("records")
        self._need = RequiredRights(
            reads=tuple({kind.topic: None for kind in RECORD_TOPICS}),
            writes=(Topic.DEAD_LETTERS, Topic.OUTCOMES),
            groups=(self._group,),
        )
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Return from `run` after the inserts in progress."""
        self._stopping.set()

    async def run(self) -> None:
        self._health.set(self._part, ok=False, detail="joining the group")
        while not self._stopping.is_set():
            consumer, refused = self._consumer(), False
            try:
                await consumer.start()
                consumer.subscribe(list(self._kinds))
                await self._write(consumer)
            except (CommitFailedError, IllegalStateError):
                log.info(
                    "the records' group was rebalanced: reading its positions again",
                    extra={"event": "records_group_rebalanced"},
                )
            except (KafkaError, OSError) as error:
                self._health.set(self._part, ok=False, detail=f"Kafka: {error}")
                log.warning(
                    "the records' session failed, restarting: %s",
                    error,
                    extra={"event": "records_session_failed"},
                )
                refused = kind_of(error) is SendErrorKind.DENIED
                await asyncio.sleep(_RESTART_SECONDS)
            finally:
                await leave(consumer)
            if refused:
                await until(self._stopping, wait_for_rights(self._settings, self._need))

    def _consumer(self) -> Consumer:
        return new_consumer(
            self._settings,
            group_id=self._group,
            group_instance_id=f"{self._group}-{self._settings.writer_worker}",
            max_poll_interval_ms=_POLL_INTERVAL_MS,
            fetch_max_wait_ms=500,
        )

    async def _write(self, consumer: Consumer) -> None:
        last = LastFlush()
        while not self._stopping.is_set():
            batch = await self._read(consumer, last)
            if not batch:
                continue
            started = time.monotonic()
            for topic, records in _by_topic(batch).items():
                await self._insert(topic, records)
            ended = time.monotonic()
            last = LastFlush(ended - started, sum(map(len, batch.values())), ended)
            # A rebalance during the insert may have revoked some of the partitions; the commit is refused then.
            for tp in batch.keys() & consumer.assignment():
                lag = max(0, (consumer.highwater(tp) or 0) - batch[tp][-1].offset - 1)
                self._metrics.lag.labels(tp.topic, tp.partition).set(lag)
            await commit(consumer, {tp: records[-1].offset + 1 for tp, records in batch.items()})

    async def _read(self, consumer: Consumer, last: LastFlush) -> dict[TopicPartition, list[Record]]:
        batch: dict[TopicPartition, list[Record]] = {}
        since = time.monotonic()
        while not self._stopping.is_set():
            count = sum(map(len, batch.values()))
            remaining = self._policy.remaining(count, 0, time.monotonic() - since, last)
            if batch and remaining <= 0:
                break
            timeout = min(remaining, _READ_SECONDS) if batch else _READ_SECONDS
            more = await consumer.getmany(timeout_ms=max(1, int(timeout * 1000)), max_records=_READ_RECORDS)
            self._health.set(self._part, ok=True)
            if more and not batch:
                since = time.monotonic()
                last = self._policy.recent(last, since)
            for tp, records in more.items():
                batch.setdefault(tp, []).extend(records)
        return batch

    async def _insert(self, topic: str, records: list[Record]) -> None:
        kinds = self._kinds[topic]
        rows: dict[str, list[tuple[Row, Record]]] = {kind.table: [] for kind in kinds}
        rejected: list[RejectedRecord] = []
        removed: dict[bytes | None, int] = {}
        for record in records:
            try:
                if record.value is None:
                    removed[record.key] = int(record.key or b"", 16)
                else:
                    for kind in kinds:
                        rows[kind.table] += [(row, record) for row in kind.rows(record.value)]
                    # A rebuild removes an issue, and then writes it again.
                    removed.pop(record.key, None)
            except ValueError as error:
                rejected.append(_rejected(record, "undecodable", str(error)))
        for kind in kinds:
            if distinct := kind.distinct(row for row, _ in rows[kind.table]):
                rejected += await self._insert_rows(kind, distinct, rows[kind.table])
        if removed and kinds[0].topic is Topic.ISSUES:
            await self._inserter.run(lambda client: delete_issues(client, [*removed.values()]))
        await self._dead_letters.send(topic, rejected)

    async def _insert_rows(
        self, kind: RecordTopic, rows: list[Row], origins: list[tuple[Row, Record]]
    ) -> list[RejectedRecord]:
        """Insert rows; refused ones are found by bisection and returned."""
        try:
            await self._inserter.insert(kind.table, table(kind.schema, rows))
        except (RefusedData, ValueError, OverflowError) as error:
            if len(rows) == 1:
                record = next(record for row, record in origins if row is rows[0])
                return [_rejected(record, "refused", str(error))]
            middle = len(rows) // 2
            first = await self._insert_rows(kind, rows[:middle], origins)
            return first + await self._insert_rows(kind, rows[middle:], origins)
        return []


def _by_topic(batch: Mapping[TopicPartition, list[Record]]) -> dict[str, list[Record]]:
    by_topic: dict[str, list[Record]] = {}
    for tp in sorted(batch):
        by_topic.setdefault(tp.topic, []).extend(batch[tp])
    return by_topic


def _rejected(record: Record, kind: str, reason: str) -> RejectedRecord:
    value, headers = record.value or b"", tuple(record.headers)
    return RejectedRecord(record.partition, record.offset, kind, reason, value, headers)


def delete_issues(client: Client, issues: list[int]) -> None:
    """Hide issues. Raises ClickHouseError."""
    # A table, since a rebuild may remove all issues: a parameter has 128 KiB at most.
    data = np.array(issues, "<u8").tobytes()
    removed = ExternalData(file_name="removed", data=data, fmt="RowBinary", structure="issue_id UInt64")
    client.command(_DELETE, external_data=removed)
