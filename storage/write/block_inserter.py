"""Inserts blocks that can be repeated.

A block is inserted under its deduplication token, unless the token can say too much or too little. Then it is
completed: writers pause, the rows that each table lacks are found by ids and inserted, and rows that are
refused alone become dead letters.

A block is completed in these cases:

- Its events were put back, or its offsets are read again after a reset of the group: `Block.by_id`, before
  any insert. They may be stored under another block's token.
- Some of it is stored or erased: `any_known`, before each repeat. An erasure takes tokens along, and a slow
  statement may find its token forgotten.
- Its token is not reliable: `InsertGuard`, before each repeat. Since the plan's mark the server was started,
  tables may have forgotten the token, or others compared tables.
- Its token is not reliable after an insert that was a repeat. Others may have begun between the check and the
  insert.
- It is refused: `RefusedData`. Some tables may have it, others not.

A completion pauses writers before it inserts anything, so the marks of all plans from before differ from the
server's state: a writer that replays a half-completed block completes it. Reasons:
`docs/decisions/writer.md`.
"""

import logging
import time
from typing import Final

import pyarrow as pa

from storage.exactly_once.block_tokens import ServerMark, is_reliable
from storage.exactly_once.blocks import Block
from storage.exactly_once.insert_guard import InsertGuard, Renewer, SessionLength, TokenUnreliable
from storage.exactly_once.missing_rows import any_known, complete
from storage.exactly_once.server_state import server_state
from storage.tables.rollups import ROLLUPS
from storage.write.flush_policy import LastFlush
from storage.write.inserter import Inserter, RefusedData
from storage.write.rejected_records import DeadLetterWriter
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)

TABLE: Final = "ingest"
ANY: Final = " UNION ALL ".join(
    f"SELECT 1 FROM {table} LIMIT 1"  # noqa: S608 - names of our tables
    for table in ("events", "payloads", "erased_events", *(rollup.table for rollup in ROLLUPS))
)
ADMITTED_SECONDS: Final = 5.0
"""After these, no insert arrives whose writer had looked for pauses before: its session has ended, or it was
announced."""
_MARK_BLOCKS: Final = 100
"""Blocks that are planned with one mark: an older mark only makes their tokens count as forgotten a little
earlier."""


class BlockInserter:
    """Inserts blocks one at a time; `last` describes the last one."""

    def __init__(
        self, inserter: Inserter, dead_letters: DeadLetterWriter, topic: str, metrics: WriterMetrics
    ) -> None:
        self.last = LastFlush()
        self._inserter = inserter
        self._dead_letters = dead_letters
        self._topic = topic
        self._metrics = metrics
        self._mark: ServerMark | None = None
        self._marked = 0
        self._length = SessionLength()

    async def mark(self) -> ServerMark:
        """The server's mark for the plan of the next block. Waits for the server."""
        if self._mark is None or self._marked >= _MARK_BLOCKS:
            self._mark, self._marked = (await self._inserter.run(server_state)).mark, 0
        self._marked += 1
        return self._mark

    async def deliver(self, block: Block, renew: Renewer) -> None:
        """Insert a block for the first time; on return each row is in every table, or in the dead letters."""
        if len(block):
            await self._store(block, renew)
            self._metrics.event_age_seconds.observe(max(0.0, time.time() - block.oldest_ms / 1000))
        await self._dead_letters.send(self._topic, block.rejected, block.put_back)

    async def replay(self, block: Block, renew: Renewer) -> None:
        """Insert a block that may have been inserted wholly or in part.

        Another process may have inserted it, or this one before a restart. Where some of it is stored, or was
        and is erased, it is completed: an erasure takes tokens along.
        """
        if len(block):
            await self._store(block, renew, repeats=True)
        await self._dead_letters.send(self._topic, block.rejected, block.put_back)

    async def has_rows(self) -> bool:
        """Whether any event is stored, or was stored and is erased.

        Of a block that `events` refused, the other tables may have some. Plans made after it have a new mark: on
        tables that are empty now, a block of an earlier run of the server must not have its token again.
        """
        self._mark = None
        return await self._inserter.run(lambda client: bool(client.query(ANY).result_rows))

    async def _store(self, block: Block, renew: Renewer, *, repeats: bool = False) -> None:
        if block.by_id:
            await self._complete(block, renew)
            return
        rows = await self._inserter.run(lambda _client: block.columns.packed())
        await self._insert(block, rows, renew, repeats=repeats)

    async def _insert(self, block: Block, rows: pa.Table, renew: Renewer, *, repeats: bool) -> None:
        token = renew.plan.token(self._topic)
        guard = InsertGuard(
            self._inserter,
            token,
            renew,
            self._length,
            lambda client: any_known(client, rows),
            repeats=repeats,
        )
        try:
            done = await self._inserter.insert(TABLE, rows, token, guard)
        except TokenUnreliable:
            log.info(
                "the token of a block of %d rows may not hold: completing it",
                len(block),
                extra={"event": "token_unreliable"},
            )
            await self._complete(block, renew)
            return
        except RefusedData as refusal:
            log.warning(
                "ClickHouse refuses a block of %d rows, completing it: %s",
                len(block),
                refusal,
                extra={"event": "block_refused"},
            )
            await self._complete(block, renew)
            return
        self.last = LastFlush(done.seconds, len(block), time.monotonic())
        repeated = repeats or done.tries > 1
        if repeated and not is_reliable(renew.plan.mark, await self._inserter.run(server_state)):
            await self._complete(block, renew)

    async def _complete(self, block: Block, renew: Renewer) -> None:
        # The server was started, or paused inserts, since the mark: another block would be completed for the
        # same reason.
        self._mark = None
        token = renew.plan.token(self._topic)
        # No writer inserts a block that is completed by ids: there is no insert to wait for.
        seconds = 0.0 if block.by_id else ADMITTED_SECONDS
        rows = await self._inserter.run(lambda _client: block.columns.table())
        done = await self._inserter.run(lambda client: complete(client, rows, token, seconds), renew)
        for table, count in done.rows.items():
            self._metrics.repaired_rows.labels(table).inc(count)
        for row, reason in done.refused:
            project, number = rows["project_id"][row].as_py(), rows["id"][row].as_py()
            block.rejected.append(block.rejection(row, project, number[::-1], reason))
        log.info(
            "completed a block of %d rows",
            len(block),
            extra={"event": "block_completed", "repaired": done.rows},
        )
