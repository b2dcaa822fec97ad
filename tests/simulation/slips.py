"""Slips as a programmer makes them, in the code that exactness depends on: each replaces a piece of a function's source."""

import inspect
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from tests.simulation.plan import Seed
from tests.simulation.probes import probe_at


class Slip(NamedTuple):
    """A function, a piece of its source that is there once, and what stands there instead."""

    function: str
    old: str
    new: str


@contextmanager
def slipped(slip: Slip) -> Iterator[None]:
    """Let a slip be in the product. Raises LookupError where the piece is not there once.

    The function's code is replaced, not the function: whoever has imported it has the slip too.
    """
    function = _function(slip.function)
    source = inspect.getsource(function)
    if source.count(slip.old) != 1:
        raise LookupError(f"{slip.function} has {slip.old!r} {source.count(slip.old)} times")
    path = Path(function.__code__.co_filename)
    whole = path.read_text()
    # From the function's own line on: another one may have the same text.
    before = "".join(whole.splitlines(keepends=True)[: function.__code__.co_firstlineno - 1])
    text = before + whole[len(before) :].replace(slip.old, slip.new, 1)
    original = function.__code__
    function.__code__ = _code(compile(text, str(path), "exec", dont_inherit=True), original.co_qualname)
    try:
        yield
    finally:
        function.__code__ = original
        linecache.checkcache(str(path))


def probe_of(slip: Slip) -> tuple[str, int]:
    """The module of a slip, and the probe that a schedule meets before it."""
    function = _function(slip.function)
    before = inspect.getsource(function).partition(slip.old)[0] + slip.old[: -len(slip.old.lstrip())]
    return function.__module__, probe_at(
        function.__module__, function.__code__.co_firstlineno + before.count("\n")
    )


def _function(name: str) -> FunctionType:
    found: Any = resolve_name(name)
    if isinstance(found, property):
        found = found.fget
    found = inspect.unwrap(found)
    assert isinstance(found, FunctionType)
    return found


def _code(code: CodeType, name: str) -> CodeType:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for one in inner:
        if one.co_qualname == name:
            return one
    owner = next(one for one in inner if name.startswith(f"{one.co_qualname}."))
    return _code(owner, name)


_PUBLISHER: Final = "edge.delivery.publisher"
_CHUNKER: Final = "edge.delivery.chunker"
_CHUNK_DELIVERY: Final = "edge.delivery.chunk_delivery"
_SPOOL: Final = "edge.delivery.spool.Spool"
_DRAIN: Final = "edge.delivery.drain"
_SEGMENTS: Final = "edge.delivery.segments"
_GROUPER: Final = "processors.grouper.stage.GrouperStage"
_BATCH: Final = "processors.grouper.batch"
_DEDUPE: Final = "processors.grouper.dedupe.Dedupe"
_COMPACTION: Final = "processors.grouper.compaction"
_REPLAY: Final = "processors.grouper.replay"
_COUNTS: Final = "processors.grouper.counts"
_AGGREGATOR: Final = "processors.aggregator.stage.AggregatorStage"
_FOLD: Final = "processors.aggregator.fold.Fold"
_CHANGES: Final = "processors.aggregator.changes.BatchChanges"
_MERGES: Final = "processors.aggregator.merges"
_LIFE: Final = "processors.aggregator.lifecycle"
_TOTALS: Final = "processors.aggregator.totals"
_LOG: Final = "processors.changelog"
_TABLES: Final = "processors.batch_table"
_STAGE: Final = "storage.write.stage.EventsStage"
_BLOCKS: Final = "storage.exactly_once.blocks"
_INSERTER: Final = "storage.write.block_inserter"
_GUARD: Final = "storage.exactly_once.insert_guard.InsertGuard"
_TOKENS: Final = "storage.exactly_once.tokens"
_FILLING: Final = "storage.exactly_once.filling.Filling"
_MISSING: Final = "storage.exactly_once.missing_rows"
_USER: Final = "storage.maintain.erase.user"
_REBUILD: Final = "rebuild.issues"

SLIPS: Final = {
    # The edge and its spool.
    "edge: an event that is too large for Kafka is forgotten": Slip(
        f"{_CHUNK_DELIVERY}.ChunkDelivery.deliver", "if remaining:", "if remaining and not self._sink.up:"
    ),
    "edge: a chunk that Kafka refuses counts as stored": Slip(
        f"{_CHUNKER}.Chunker._send", "done.set_exception(error)", "done.set_result(None)"
    ),
    "edge: a chunk keeps the event of the next": Slip(
        f"{_CHUNKER}.Chunker._flush", "buffer.events, [], 0, None", "buffer.events[:-1] or buffer.events, [], 0, None"
    ),
    "edge: only the first chunk of a request is waited for": Slip(
        f"{_PUBLISHER}.EventPublisher.wait_stored", "await asyncio.shield(chunk)", "return await asyncio.shield(chunk)"
    ),
    "edge: all events of a request go to the partition of the last": Slip(
        f"{_PUBLISHER}.EventPublisher.put", "group = by_partition[partition_of(seed, event_id, partitions)]",
        "group = by_partition[partition_of(seed, events[-1][0], partitions)]",
    ),
    "spool: a write is acknowledged without fsync": Slip(
        f"{_SPOOL}._write", "os.fsync(file.fileno())", "file.fileno()"
    ),
    "spool: a failed write leaves its half": Slip(
        f"{_SPOOL}._roll_back", "os.ftruncate(self._current.fileno(), self._current_size)", "self._current.fileno()"
    ),
    "spool: records are acknowledged before they are written": Slip(
        f"{_SPOOL}._commit", "waiting, self._waiting = self._waiting, []",
        "waiting, self._waiting = self._waiting, []; [w.set_result(None) for _, w in waiting]; waiting = [(f, loop.create_future()) for f, _ in waiting]",
    ),
    "spool: a failed write is no error": Slip(
        f"{_SPOOL}._commit", "written.set_exception(SpoolFull(str(error)))", "written.set_result(None)"
    ),
    "drain: a segment is removed before its events are sent": Slip(
        f"{_DRAIN}._drain", "too_large = await send_all(opened, sink)",
        "await spool.remove(segment) if opened.reason is None else None; too_large = await send_all(opened, sink)",
    ),
    "drain: a pause counts as sent": Slip(
        f"{_DRAIN}.send_all", "too_large += len(await send_partitioned(sink, events))",
        "too_large += len(await send_partitioned(sink, events)) if sink.up else 0",
    ),
    "drain: the rest of a batch is forgotten": Slip(f"{_DRAIN}.batches", "    if batch:\n        yield batch", "    if len(batch) > 1:\n        yield batch"),
    "drain: damage is not kept": Slip(f"{_DRAIN}.OpenedSegment.reason", "if self.damaged:", "if self.damaged > 1 << 20:"),
    "segments: the search after damage begins one frame late": Slip(
        f"{_SEGMENTS}.parse", "offset = following", "offset = following + _FRAME.size"
    ),
    # The grouper.
    "grouper: outputs are published before the decision is recorded": Slip(
        f"{_GROUPER}.handle_batch", "await asyncio.gather(*(self._record(output) for output in outputs))",
        "await self._publish(chain.from_iterable(self._outputs(output) for output in outputs)); await asyncio.gather(*(self._record(output) for output in outputs))",
    ),
    "grouper: a decision is not awaited": Slip(
        f"{_GROUPER}._record", "await self._seen.write(output.partition, changes)",
        "asyncio.ensure_future(self._seen.write(output.partition, changes))",
    ),
    "grouper: increments are those of the next record": Slip(
        f"{_BATCH}._ChunkWork._finish", "SourceIncrements(output.partition, offset, self.increments.finish())",
        "SourceIncrements(output.partition, offset + 1, self.increments.finish())",
    ),
    "grouper: outcomes of a replay have another sequence": Slip(
        f"{_BATCH}._ChunkWork.run", "outcomes = RecordOutcomes(output.partition, self.source.offset)",
        "outcomes = RecordOutcomes(output.partition, self.source.offset + bool(record.fingerprints))",
    ),
    "grouper: a replay groups by the rules of now": Slip(
        f"{_BATCH}._ChunkWork.run", "recorded[index] if recorded else result.fingerprint", "result.fingerprint"
    ),
    "grouper: the next offset is one short": Slip(
        f"{_BATCH}.decide", "state.next_offset += len(sources)", "state.next_offset += max(0, len(sources) - 1)"
    ),
    "grouper: a dead event's id counts as seen": Slip(f"{_BATCH}.decide", "if record.dead:", "if False:"),
    "grouper: old ids are not looked up": Slip(f"{_GROUPER}.handle_batch", "if self._stored_ids else ()", "if not self._stored_ids else ()"),
    "grouper: found ids are not used": Slip(f"{_BATCH}.decide", "state.dedupe.decide(after, stored)", "state.dedupe.decide(after)"),
    "grouper: a replay starts after the last batch": Slip(
        f"{_REPLAY}.replay_start", "min(hole, newest.batch_start)", "min(hole, newest.last + 1)"
    ),
    "grouper: a hole is not seen": Slip(f"{_REPLAY}.first_hole", "if first > hole:", "if first > hole + 1:"),
    "grouper: a loss replays one record less": Slip(
        f"{_REPLAY}.ReplayBoundary.from_records", "last - reach + 1", "last + 1"
    ),
    "grouper: a loss forgets what was published": Slip(
        f"{_GROUPER}._boundary", "if start.lost or recorded else None", "if recorded else None"
    ),
    "grouper: ids of two projects are one": Slip(
        "processors.grouper.batch._undecided", "[e.project for e in chunk]", "[0 for e in chunk]"
    ),
    "edge: all events of a request have the payload of the first": Slip(
        f"{_PUBLISHER}.EventPublisher.put", "(number, raw_id, received_ms, sdk, bytes(event))", "(number, raw_id, received_ms, sdk, bytes(events[0][1]))"
    ),
    "compaction: entries are removed before they are merged": Slip(
        f"{_COMPACTION}.LogCompaction.compact", "        yield [(block.key, value) for block, value in merged]\n", ""
    ),
    "compaction: the newest batch is merged too": Slip(
        f"{_COMPACTION}.LogCompaction.compact", "if entry.last < end]", "if entry.last < end + 2]"
    ),
    "compaction: no horizon": Slip(
        f"{_COMPACTION}.LogCompaction._expire", "yield [(horizon_key(self._partition), encode(max(ends) + 1))]", "pass"
    ),
    "compaction: a day is forgotten one too early": Slip(
        f"{_DEDUPE}.decide", "self._index.forget_before(clock.day - self._days)", "self._index.forget_before(clock.day)"
    ),
    "dedupe: a restart restores no keys of the last entry": Slip(
        "processors.grouper.dedupe.SortedIds.of", "        for entry in entries:\n            day", "        for entry in entries[:-1]:\n            day"
    ),
    "counts: the oldest release is the newest": Slip(
        f"{_COUNTS}._add", "total.first_ms, total.first_release = ms, release", "total.first_ms = ms"
    ),
    "counts: the hour of receipt": Slip(
        f"{_COUNTS}.Increments.add", "ms // HOUR_MS", "chunk_event.received_ms // HOUR_MS"
    ),
    "counts: of equal times the smaller id is the newest": Slip(
        f"{_COUNTS}._add", "chunk_event.id > total.last_event", "chunk_event.id < total.last_event"
    ),
    # The aggregator, merges and the life cycle.
    "aggregator: a position is compared with <": Slip(f"{_FOLD}.add", ">= offset", "> offset"),
    "aggregator: positions of all partitions are one": Slip(
        f"{_FOLD}.add", "record.positions[partition] = offset", "record.positions = dict.fromkeys((*record.positions, partition), offset)"
    ),
    "aggregator: the position is written before the issues": Slip(
        f"{_AGGREGATOR}._record", "await self._issues.write(partition, changes)\n        issues",
        "await self._seen.write(partition, [(deltas_key(partition), encode_position(DeltasPosition(state.next_offset - 1, 0, 0)))])\n        await self._issues.write(partition, changes)\n        issues",
    ),
    "aggregator: a restart begins one record late": Slip(
        f"{_AGGREGATOR}.restore", "max(log_start, position.offset + 1)", "max(log_start, position.offset + 2)"
    ),
    "aggregator: lost issues are not noticed": Slip(
        f"{_AGGREGATOR}.restore", "position is None or (held >= position.issues and versions >= position.versions)", "True"
    ),
    "aggregator: activities are published after the position": Slip(
        f"{_AGGREGATOR}._handle", "            await self._publish(self._outputs(state.partition, changes, dead))\n",
        "            await self._record(state, BatchChanges())\n            await self._publish(self._outputs(state.partition, changes, dead))\n",
    ),
    "aggregator: a stale fold": Slip(
        f"{_AGGREGATOR}._find", "fold = state.folds[issue] = Fold.restore(value)", "fold = Fold.restore(value)"
    ),
    "aggregator: users of an increment are forgotten": Slip(f"{_FOLD}.add", "bool(increment.users)", "len(increment.users) > 1"),
    "aggregator: first seen is not moved back": Slip(f"{_FOLD}.add", "or first < record.first_seen_ms", "or first > record.first_seen_ms"),
    "aggregator: an older event describes the issue": Slip(f"{_FOLD}.add", "or last > record.last_seen_ms", "or last < record.last_seen_ms"),
    "aggregator: environments count events once": Slip(
        f"{_FOLD}._add_rows", "environments[row.environment] = environments.get(row.environment, 0) + events", "environments[row.environment] = events"
    ),
    "commands: a merged issue keeps its command": Slip(
        f"{_CHANGES}.command", "self.deltas.append((target, DeltaRecord(command=replace(command, issue=target))))", "pass"
    ),
    "signals: news are forgotten": Slip(f"{_CHANGES}.finish", "if state.merged_into is not None:", "if state.merged_into is None:"),
    "merges: an answer is not sent": Slip(
        f"{_MERGES}._leave", '{"from": signal.sender}),), (answer,))', '{"from": signal.sender}),), ())'
    ),
    "merges: members do not move": Slip(f"{_MERGES}._joined", "        moves,\n", "        (),\n"),
    "merges: a refusal stays pending": Slip(f"{_MERGES}._answered", '"join" if signal.kind == "refused" else "leave"', '"leave" if signal.kind == "refused" else "join"'),
    "merges: two issues merge into each other": Slip(f"{_MERGES}._join", "if life.pending:", "if False:"),
    "merges: old news count": Slip(f"{_MERGES}._news", "if signal.version <= known:", "if signal.version < known - 1 and False:"),
    "merges: an issue keeps the member that left": Slip(
        f"{_MERGES}.unmerge", "if issue not in leaving}", "if issue in leaving}"
    ),
    "merges: the sum of figures counts the newest twice": Slip(f"{_TOTALS}.added", "users_sketch=united(part.users_sketch for part in all_parts).text()", "users_sketch=newest.users_sketch"),
    "life: a resolved issue stays resolved": Slip(f"{_LIFE}.regresses", "order > 0 or (order == 0 and not fix.after)", "order < 0"),
    "life: a limit is one late": Slip(f"{_LIFE}._ignored", 'since.events >= until["events"]', 'since.events > until["events"]'),
    "life: a regressed issue keeps its status": Slip(f"{_LIFE}._resolved", "opened(record, regressed=True), (activity,)", "record, (activity,)"),
    "life: resolving tells nothing": Slip(f"{_LIFE}.update", "if kind is not None:", "if kind is None:"),
    "findings: none is published": Slip("processors.aggregator.changes.BatchChanges.increment", "(*created, *found, *change.activities)", "(*created, *change.activities)"),
    "findings: every release is a new one": Slip("processors.aggregator.fold.Fold._add_rows", "if row.release not in releases:", "if row.release:"),
    # Logs with one owner.
    "changelog: an old owner's record is taken": Slip(f"{_LOG}.PartitionLog.read", "epoch < self.newest", "epoch < self.newest - 1_000_000"),
    "changelog: another's write is not noticed": Slip(f"{_LOG}.PartitionLog.wrote", "batch.first != self.end", "batch.first < self.end"),
    "changelog: dropped records are not corrected": Slip(f"{_LOG}.Changelog.corrections", "sorted(self.log(partition).dropped)", "[]"),
    "tables: a write reaches the changelog alone": Slip(
        f"{_TABLES}.PartitionStore.written", "self.apply(partition, changes)", "pass"
    ),
    # The writer.
    "writer: a block is committed before its insert": Slip(
        f"{_STAGE}._flush", "                await inserter.deliver(", "                await self._source.commit(ends); await inserter.deliver("
    ),
    "writer: a plan is not replayed": Slip(f"{_STAGE}._restore", "await inserter.replay(block, self._renewer(plan, ours))", "pass"),
    "writer: a replay reads one record less": Slip(f"{_STAGE}._read_plan", "span.first, span.last)", "span.first, max(span.first, span.last - 1))"),
    "writer: a commit without an answer is sent again": Slip("broker.commit.commit_once", "consumer._client.send = sent", "pass"),
    "writer: repeated positions are stored": Slip(f"{_BLOCKS}.Block._feed", "chunk.offset <= source_offset", "chunk.offset < source_offset"),
    "writer: a put back event moves the position": Slip(f"{_BLOCKS}.Block._feed", "return chunk.offset if origin is None else source_offset", "return chunk.offset"),
    "writer: payload and event days are swapped": Slip(f"{_BLOCKS}.Block._add", "*_stored_days(chunk, event))", "*_stored_days(chunk, event)[::-1])"),
    "writer: half a window is a whole one": Slip(f"{_TOKENS}.is_reliable", "(now - then + 1) * _WINDOW_PARTS <= window", "now - then <= 4 * window"),
    "writer: a pause since the plan is not seen": Slip(f"{_TOKENS}.is_reliable", "0 < mark.pauses == state.mark.pauses and", ""),
    "writer: pauses are not waited for": Slip(f"{_GUARD}._check", "await self._wait_for_pauses()", "False"),
    "writer: an insert may come late": Slip(f"{_GUARD}.__call__", "return session", "return {}"),
    "writer: a long session is not announced": Slip(f"{_GUARD}._begin_session", "begin_session(client, seconds)", "begin_session(client, 30)"),
    "writer: a refused block is dropped": Slip(
        f"{_INSERTER}.BlockInserter._complete", "block.rejected.append(block.rejection(row, project, number[::-1], reason))", "pass"
    ),
    # Completion, repair, erasure, rebuild.
    "completion: payloads are forgotten": Slip(f"{_MISSING}.complete", 'filling.fill("payloads", [row for row in chosen if row not in refused], pause)', "0, {}"),
    "completion: erased events come back": Slip(f"{_FILLING}._compare", "known |= stored(", "stored("),
    "packs: the others of a pack are forgotten": Slip("storage.exactly_once.unpacking.unpack", "_insert(client, project, packs[first : first + _AT_ONCE])", "pass"),
    "packs: an erasure leaves them whole": Slip(f"{_USER}._delete_events", 'unpack(client, scope.rows("payloads"), delete)', "pass"),
    "completion: rollups are not repaired": Slip(f"{_MISSING}.complete", "repaired=repair_rollups(client, set(_days(block)))", "repaired={}"),
    "repair: only the first project's days": Slip("storage.exactly_once.repair_rollups.repair_rollups", "for project, day in sorted(set(days)):", "for project, day in sorted(set(days))[:1]:"),
    "repair: a difference is inserted twice": Slip(
        "storage.exactly_once.repair_rollups._repair", "done = client.raw_insert(", "client.raw_insert(rollup.table, columns, rows, settings=INSERT_SETTINGS, fmt='Native'); done = client.raw_insert("
    ),
    "erasure: events that come again are not forbidden": Slip(f"{_USER}._delete", "client.command(NEVER_AGAIN, parameters=parameters)", "pass"),
    "erasure: the counts are forgotten": Slip(f"{_USER}._finish", "client.command(COUNT, parameters={\"erasure\": erasure.id})", "pass"),
    "erasure: rollups are not counted again": Slip(f"{_USER}._erase_week", "repair_where(client, queries, _QUIET_SECONDS)", "pass"),
    "erasure: it is done before it begins": Slip(f"{_USER}.resume", '("user", "deleting")', '("user", "done")'),
    "rebuild: positions are forgotten": Slip(f"{_REBUILD}._record", "if offset >= 0}", "if offset < 0}"),
    "rebuild: the version starts again": Slip(f"{_REBUILD}._record", "version=(1 if row is None else row.version + 1) + newer", "version=1"),
    "rebuild: members are forgotten": Slip("rebuild.merges.Merges.linked", "home is not None and home in by_id", "home is None and home in by_id"),
    "rebuild: an undone merge's late signal is applied": Slip("rebuild.merges.Merges.linked", "(*record.life.signals, signal.name)", "record.life.signals"),
    "rebuild: what is undone is not told": Slip("rebuild.tables._issues", "await write(need.processors, Topic.ISSUE_ACTIVITY, new.activities)", "pass"),
    # Several ClickHouse servers.
    "shards: a partition is on the next server": Slip("storage.shards.Shard.those_of", "== self.number", "== (self.number + 1) % self.count"),
    "shards: old ids are looked up on the first server": Slip(
        "storage.read.events.stored_ids.StoredIds.among", "shard.those_of(ids)", "(() if shard.number else ids)"
    ),
    "shards: an erasure lists the events of one server": Slip(f"{_USER}.erase_user", "for server in servers:", "for server in servers[:1]:"),
}  # fmt: skip

SEEDS: Final[dict[str, Seed]] = {
    "edge: a chunk keeps the event of the next": 11,
    "spool: records are acknowledged before they are written": 2303,
    "drain: the rest of a batch is forgotten": 73,
    "grouper: outcomes of a replay have another sequence": 957,
    "grouper: ids of two projects are one": 1218,
    "dedupe: a restart restores no keys of the last entry": 452,
    "findings: every release is a new one": 1,
    "counts: of equal times the smaller id is the newest": 52,
    "aggregator: first seen is not moved back": 229,
    "merges: an answer is not sent": 7,
    "life: a regressed issue keeps its status": 64,
    "writer: a long session is not announced": 731388,
    "completion: rollups are not repaired": 363,
    "erasure: events that come again are not forbidden": 4,
    "merges: two issues merge into each other": 126,
    "drain: a segment is removed before its events are sent": 11,
    "edge: all events of a request have the payload of the first": 11,
    "aggregator: a position is compared with <": 151,
    "aggregator: a restart begins one record late": 430,
    "aggregator: a stale fold": 816,
    "aggregator: an older event describes the issue": 229,
    "life: resolving tells nothing": 240,
    "erasure: the counts are forgotten": 4,
    "grouper: the next offset is one short": 151,
    "counts: the oldest release is the newest": 88,
    "merges: members do not move": 133,
    "rebuild: positions are forgotten": 142,
    "spool: a failed write is no error": 2303,
    "compaction: entries are removed before they are merged": 599,
    "counts: the hour of receipt": 5,
    "aggregator: users of an increment are forgotten": 229,
    "aggregator: environments count events once": 229,
    "signals: news are forgotten": 23,
    "merges: a refusal stays pending": 7,
    "merges: an issue keeps the member that left": 7,
    "writer: a refused block is dropped": 705,
    "erasure: rollups are not counted again": 4,
    "grouper: a replay starts after the last batch": 162,
    "aggregator: positions of all partitions are one": 877,
    "rebuild: the version starts again": 369,
    "edge: an event that is too large for Kafka is forgotten": 236,
    "edge: a chunk that Kafka refuses counts as stored": 439,
    "spool: a write is acknowledged without fsync": 546,
    "spool: a failed write leaves its half": 1726,
    "drain: damage is not kept": 741,
    "grouper: outputs are published before the decision is recorded": 2604,
    "grouper: increments are those of the next record": 156,
    "grouper: a replay groups by the rules of now": 250,
    "grouper: a dead event's id counts as seen": 83,
    "grouper: a hole is not seen": 2485,
    "grouper: a loss forgets what was published": 351,
    "compaction: the newest batch is merged too": 11134,
    "compaction: a day is forgotten one too early": 78,
    "aggregator: the position is written before the issues": 419,
    "aggregator: activities are published after the position": 419,
    "merges: old news count": "3000.24",
    "life: a limit is one late": 302,
    "changelog: another's write is not noticed": 51,
    "writer: a commit without an answer is sent again": 4021,
    "writer: payload and event days are swapped": 5,
    "writer: a pause since the plan is not seen": 324,
    "completion: payloads are forgotten": 1544,
    "completion: erased events come back": 17,
    "packs: the others of a pack are forgotten": 4,
    "packs: an erasure leaves them whole": 4,
    "repair: only the first project's days": 1544,
    "repair: a difference is inserted twice": 1544,
    "rebuild: members are forgotten": 369,
    "rebuild: an undone merge's late signal is applied": 2784,
    "rebuild: what is undone is not told": 6437,
    "edge: all events of a request go to the partition of the last": 974,
    "tables: a write reaches the changelog alone": 56,
    "segments: the search after damage begins one frame late": 3079,
    "writer: pauses are not waited for": 14,
    "shards: a partition is on the next server": 55,
    "shards: an erasure lists the events of one server": 55,
    "shards: old ids are looked up on the first server": 40151,
}
"""Seeds that find them; one that is not here was not found yet."""
