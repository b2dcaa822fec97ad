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
    """A function, a piece of its source that is there once, its replacement, and a seed that finds it."""

    function: str
    old: str
    new: str
    seed: Seed | None = None


@contextmanager
def slipped(slip: Slip) -> Iterator[None]:
    """Let a slip be in the product. Raises LookupError where the piece is not there once.

    The function's code is replaced, not the function: modules that have imported it have the slip too.
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
_GROUPER: Final = "processors.grouper.grouper_stage.GrouperStage"
_BATCH: Final = "processors.grouper.batch"
_DEDUPE: Final = "processors.grouper.dedupe.Dedupe"
_COMPACTION: Final = "processors.grouper.compaction"
_REPLAY: Final = "processors.grouper.replay_start"
_COUNTS: Final = "processors.grouper.record_counts"
_AGGREGATOR: Final = "processors.aggregator.aggregator_stage.AggregatorStage"
_FOLD: Final = "processors.aggregator.issue_fold.Fold"
_CHANGES: Final = "processors.aggregator.batch_changes.BatchChanges"
_MERGES: Final = "processors.aggregator.issue_merges"
_LIFE: Final = "processors.aggregator.lifecycle"
_TOTALS: Final = "processors.aggregator.totals"
_LOG: Final = "processors.changelog"
_TABLES: Final = "processors.batch_table"
_STAGE: Final = "storage.write.events_stage.EventsStage"
_BLOCKS: Final = "storage.exactly_once.blocks"
_INSERTER: Final = "storage.write.block_inserter"
_GUARD: Final = "storage.exactly_once.insert_guard.InsertGuard"
_TOKENS: Final = "storage.exactly_once.block_tokens"
_FILLING: Final = "storage.exactly_once.filling.Filling"
_MISSING: Final = "storage.exactly_once.missing_rows"
_USER: Final = "storage.maintain.erase.erase_user"
_REBUILD: Final = "rebuild.rebuilt_issues"
_RECORDS: Final = "storage.write.records_stage.RecordsStage"
_DEAD_LETTERS: Final = "storage.write.rejected_records"
_PLAN: Final = "storage.exactly_once.block_plan"
_READS: Final = "storage.exactly_once.consistent_read"
_STATE: Final = "storage.exactly_once.server_state"
_DESCRIPTIONS: Final = "storage.maintain.erase.erased_issues"
_PURGE: Final = "storage.maintain.erase.purge"
_PARTS: Final = "rebuild.rebuilt_merges.Merges"
_REBUILT_IDS: Final = "rebuild.rebuilt_ids"
_RECOVERY: Final = "processors.faust_app.recovery.Recovery"
_RECOVERED: Final = "processors.grouper.recovered"
_IDS: Final = "processors.grouper.id_index"
_COMPACTING: Final = "processors.grouper.compaction.LogCompaction"

SLIPS: Final = {
    # The edge and its spool.
    "edge: an event that is too large for Kafka is forgotten": Slip(
        f"{_CHUNK_DELIVERY}.ChunkDelivery.deliver", "if remaining:", "if remaining and not self._sink.up:", seed=236
    ),
    "edge: a chunk that Kafka refuses counts as stored": Slip(
        f"{_CHUNKER}.Chunker._send", "done.set_exception(error)", "done.set_result(None)", seed=439
    ),
    "edge: a chunk keeps the event of the next": Slip(
        f"{_CHUNKER}.Chunker._flush", "buffer.events, [], 0, None", "buffer.events[:-1] or buffer.events, [], 0, None", seed=11
    ),
    "edge: only the first chunk of a request is waited for": Slip(
        f"{_PUBLISHER}.EventPublisher.wait_stored", "await asyncio.shield(chunk)", "return await asyncio.shield(chunk)", seed="2100020234.61.28835911.162147986"),
    "edge: all events of a request go to the partition of the last": Slip(
        f"{_PUBLISHER}.EventPublisher.put", "group = by_partition[partition_of(seed, event_id, partitions)]",
        "group = by_partition[partition_of(seed, events[-1][0], partitions)]", seed=974,
    ),
    "spool: a write is acknowledged without fsync": Slip(
        f"{_SPOOL}._write", "os.fsync(file.fileno())", "file.fileno()", seed=546
    ),
    "spool: a failed write leaves its half": Slip(
        f"{_SPOOL}._roll_back", "os.ftruncate(self._current.fileno(), self._current_size)", "self._current.fileno()", seed=1726
    ),
    "spool: records are acknowledged before they are written": Slip(
        f"{_SPOOL}._commit", "waiting, self._waiting = self._waiting, []",
        "waiting, self._waiting = self._waiting, []; [w.set_result(None) for _, w in waiting]; waiting = [(f, loop.create_future()) for f, _ in waiting]", seed=2303,
    ),
    "spool: a failed write is no error": Slip(
        f"{_SPOOL}._commit", "written.set_exception(SpoolFull(str(error)))", "written.set_result(None)", seed=2303
    ),
    "drain: a segment is removed before its events are sent": Slip(
        f"{_DRAIN}._drain", "too_large = await send_all(opened, sink)",
        "await spool.remove(segment) if opened.reason is None else None; too_large = await send_all(opened, sink)", seed=11,
    ),
    "drain: a pause counts as sent": Slip(
        f"{_DRAIN}.send_all", "too_large += len(await send_partitioned(sink, events))",
        "too_large += len(await send_partitioned(sink, events)) if sink.up else 0", seed="2100020427.61"),
    "drain: the rest of a batch is forgotten": Slip(f"{_DRAIN}.batches", "    if batch:\n        yield batch", "    if len(batch) > 1:\n        yield batch", seed=73),
    "drain: damage is not kept": Slip(f"{_DRAIN}.OpenedSegment.reason", "if self.damaged:", "if self.damaged > 1 << 20:", seed=741),
    "segments: the search after damage begins one frame late": Slip(
        f"{_SEGMENTS}.parse", "offset = following", "offset = following + _FRAME.size", seed=3079
    ),
    # The grouper.
    "grouper: outputs are published before the decision is recorded": Slip(
        f"{_GROUPER}.handle_batch", "await asyncio.gather(*(self._record(output) for output in outputs))",
        "await self._publish(chain.from_iterable(self._outputs(output) for output in outputs)); await asyncio.gather(*(self._record(output) for output in outputs))", seed="2100020322.46",
    ),
    "grouper: a decision is not awaited": Slip(
        f"{_GROUPER}._record", "await self._seen.write(partition, changes)",
        "asyncio.ensure_future(self._seen.write(partition, changes))", seed="568.36"),
    "grouper: entries of all owners have the same keys": Slip(
        f"{_GROUPER}._record", "entry.last, epoch)", "entry.last)",
    ),
    "grouper: increments are those of the next record": Slip(
        f"{_BATCH}._ChunkWork._finish", "SourceIncrements(output.partition, offset, self.increments.finish())",
        "SourceIncrements(output.partition, offset + 1, self.increments.finish())", seed=156,
    ),
    "grouper: outcomes of a replay have another sequence": Slip(
        f"{_BATCH}._ChunkWork.run", "outcomes = RecordOutcomes(output.partition, self.source.offset)",
        "outcomes = RecordOutcomes(output.partition, self.source.offset + bool(record.fingerprints))", seed=957,
    ),
    "grouper: a replay groups by the rules of now": Slip(
        f"{_BATCH}._ChunkWork.run", "recorded[index] if recorded else result.fingerprint", "result.fingerprint", seed=250
    ),
    "grouper: the next offset is one short": Slip(
        f"{_BATCH}.decide", "state.next_offset += len(sources)", "state.next_offset += max(0, len(sources) - 1)", seed=151
    ),
    "grouper: a dead event's id counts as seen": Slip(f"{_BATCH}.decide", "if record.dead:", "if False:", seed="7810.52"),
    "grouper: old ids are not looked up": Slip(f"{_GROUPER}.handle_batch", "if self._stored_ids else ()", "if not self._stored_ids else ()", seed="509.51"),
    "grouper: found ids are not used": Slip(f"{_BATCH}.decide", "state.dedupe.decide(after, stored)", "state.dedupe.decide(after)", seed="2100020358.49"),
    "grouper: a replay starts after the last batch": Slip(
        f"{_REPLAY}.replay_start", "min(hole, newest.batch_start)", "min(hole, newest.last + 1)", seed=162
    ),
    "grouper: a hole is not seen": Slip(f"{_REPLAY}.first_hole", "if first > hole:", "if first > hole + 1:", seed=2485),
    "grouper: a loss replays one record less": Slip(
        f"{_REPLAY}.ReplayBoundary.from_records", "last - reach + 1", "last + 1", seed="2100021041.58"),
    "grouper: a loss forgets published records": Slip(
        f"{_GROUPER}._boundary", "if start.lost or recorded else None", "if recorded else None", seed=351
    ),
    "grouper: ids of two projects are one": Slip(
        "processors.grouper.batch._undecided", "[e.project for e in chunk]", "[0 for e in chunk]", seed=1218
    ),
    "edge: all events of a request have the payload of the first": Slip(
        f"{_PUBLISHER}.EventPublisher.put", "(number, raw_id, received_ms, sdk, bytes(event))", "(number, raw_id, received_ms, sdk, bytes(events[0][1]))", seed=11
    ),
    "compaction: entries are removed before they are merged": Slip(
        f"{_COMPACTION}.LogCompaction.compact", "        yield [(block.key, value) for block, value in merged]\n", "", seed=599
    ),
    "compaction: the newest batch is merged too": Slip(
        f"{_COMPACTION}.LogCompaction.compact", "if entry.last < end]", "if entry.last < end + 2]"
    ),
    "compaction: no horizon": Slip(
        f"{_COMPACTION}.LogCompaction._expire", "yield [horizon, *ahead,", "yield [*ahead,", seed="2100020439.49"),
    "compaction: ids of the future are before the horizon": Slip(
        f"{_COMPACTION}.LogCompaction._expire", "yield [horizon, *ahead, *((block.key, value) for block, value in left)]",
        "yield [*((block.key, value) for block, value in left), horizon]"
    ),
    "compaction: a day is forgotten one too early": Slip(
        f"{_DEDUPE}.decide", "self._index.forget_before(clock.day - self._days)", "self._index.forget_before(clock.day)", seed=78
    ),
    "dedupe: a restart restores no keys of the last entry": Slip(
        "processors.grouper.dedupe.SortedIds.of", "        for entry in entries:\n            day", "        for entry in entries[:-1]:\n            day", seed="7099.50"
    ),
    "counts: the oldest release is the newest": Slip(
        f"{_COUNTS}._add", "total.first_ms, total.first_release = ms, release", "total.first_ms = ms", seed=88
    ),
    "counts: the hour of receipt": Slip(
        f"{_COUNTS}.Increments.count_event", "ms // HOUR_MS", "chunk_event.received_ms // HOUR_MS", seed=5
    ),
    "counts: of equal times the smaller id is the newest": Slip(
        f"{_COUNTS}._add", "chunk_event.id > total.last_event", "chunk_event.id < total.last_event", seed=52
    ),
    # The aggregator, merges and the life cycle.
    "aggregator: a position is compared with <": Slip(f"{_FOLD}.add_increment", ">= offset", "> offset", seed=151),
    "aggregator: positions of all partitions are one": Slip(
        f"{_FOLD}.add_increment", "record.positions[partition] = offset", "record.positions = dict.fromkeys((*record.positions, partition), offset)", seed=4946
    ),
    "aggregator: the position is written before the issues": Slip(
        f"{_AGGREGATOR}._record", "await self._issues.write(partition, changes)\n        issues",
        "await self._seen.write(partition, [(deltas_key(partition), encode_position(DeltasPosition(state.next_offset - 1, 0, 0)))])\n        await self._issues.write(partition, changes)\n        issues", seed="2100020390.45",
    ),
    "aggregator: a restart begins one record late": Slip(
        f"{_AGGREGATOR}.restore", "max(log_start, position.offset + 1)", "max(log_start, position.offset + 2)", seed=430
    ),
    "aggregator: lost issues are not noticed": Slip(
        f"{_AGGREGATOR}.restore", "position is None or (held >= position.issues and versions >= position.versions)", "True", seed=2100020680),
    "aggregator: activities are published after the position": Slip(
        f"{_AGGREGATOR}._handle", "            await self._publish(self._outputs(state.partition, changes, dead))\n",
        "            await self._record(state, BatchChanges())\n            await self._publish(self._outputs(state.partition, changes, dead))\n", seed=25,
    ),
    "aggregator: a stale fold": Slip(
        f"{_AGGREGATOR}._find", "fold = state.folds[issue] = Fold.restore(value)", "fold = Fold.restore(value)", seed=816
    ),
    "aggregator: users of an increment are forgotten": Slip(f"{_FOLD}.add_increment", "bool(increment.users)", "len(increment.users) > 1", seed=229),
    "aggregator: first seen is not moved back": Slip(f"{_FOLD}.add_increment", "or first < record.first_seen_ms", "or first > record.first_seen_ms", seed=229),
    "aggregator: an older event describes the issue": Slip(f"{_FOLD}.add_increment", "or last > record.last_seen_ms", "or last < record.last_seen_ms", seed=229),
    "aggregator: environments count events once": Slip(
        f"{_FOLD}._add_rows", "environments[row.environment] = environments.get(row.environment, 0) + events", "environments[row.environment] = events", seed=229
    ),
    "commands: a merged issue keeps its command": Slip(
        f"{_CHANGES}.command", "self.deltas.append((target, DeltaRecord(command=replace(command, issue=target))))", "pass", seed="2100020077.30466464"),
    "signals: news are forgotten": Slip(f"{_CHANGES}.finish", "if state.merged_into is not None:", "if state.merged_into is None:", seed=23),
    "merges: a part tells a second merge under the name of the first": Slip(
        f"{_MERGES}._join", 'f"-into-{signal.sender}"', '"-into-" + "0" * 16'
    ),
    "merges: an answer is not sent": Slip(
        f"{_MERGES}._leave", "(activity,), (answer, *_moves(record, signal))", "(activity,), _moves(record, signal)", seed=7
    ),
    "merges: members do not move": Slip(f"{_MERGES}._joined", "_moves(record, requested)", "()", seed=133),
    "merges: a refusal stays pending": Slip(f"{_MERGES}._answered", '"join" if signal.kind == "refused" else "leave"', '"leave" if signal.kind == "refused" else "join"', seed=7),
    "merges: two issues merge into each other": Slip(f"{_MERGES}._join", "if life.pending:", "if False:", seed=126),
    "merges: old news count": Slip(f"{_MERGES}._news", "if signal.version <= known:", "if signal.version < known - 1 and False:", seed="2100020531.24"),
    "merges: an issue keeps the member that left": Slip(
        f"{_MERGES}.unmerge", "if issue not in leaving}", "if issue in leaving}", seed=7
    ),
    "merges: the sum of figures counts the newest twice": Slip(f"{_TOTALS}.added", "users_sketch=united(part.users_sketch for part in all_parts).text()", "users_sketch=newest.users_sketch", seed="2100020232.39"),
    "life: a resolved issue stays resolved": Slip(f"{_LIFE}.regresses", "order > 0 or (order == 0 and not fix.after)", "order < 0", seed="2100020002.0.833654300"),
    "life: a limit is one late": Slip(f"{_LIFE}._ignored", 'since.events >= until["events"]', 'since.events > until["events"]', seed=302),
    "life: a regressed issue keeps its status": Slip(f"{_LIFE}._resolved", "opened(record, regressed=True), (activity,)", "record, (activity,)", seed=64),
    "life: resolving tells nothing": Slip(f"{_LIFE}.update", "if kind is not None:", "if kind is None:", seed=240),
    "findings: none is published": Slip("processors.aggregator.batch_changes.BatchChanges.increment", "(*opening, *found, *change.activities)", "(*opening, *change.activities)", seed="2100020159.56.60701426"),
    "owners: a later event names the owner": Slip("processors.aggregator.batch_changes.BatchChanges.increment", "if is_first:", "if is_first or increment.owner:", seed="2100020622.38"),
    "owners: the assignment is told and not kept": Slip("processors.aggregator.batch_changes.BatchChanges.increment", "state = replace(state, assignee=increment.owner)", "pass", seed=1),
    "findings: every release is a new one": Slip("processors.aggregator.issue_fold.Fold._add_rows", "if row.release not in releases:", "if row.release:", seed=1),
    # Logs with one owner.
    "changelog: an old owner's record is taken": Slip(f"{_LOG}.PartitionLog.read", "epoch < self.newest", "epoch < self.newest - 1_000_000", seed="217.55"),
    "changelog: another's write is not noticed": Slip(f"{_LOG}.PartitionLog.wrote", "batch.first != self.end", "batch.first < self.end", seed=51),
    "changelog: dropped records are not corrected": Slip(f"{_LOG}.Changelog.corrections", "sorted(self.log(partition).dropped)", "[]"),
    "tables: a write reaches the changelog alone": Slip(
        f"{_TABLES}.PartitionStore.written", "self.apply(partition, changes)", "pass", seed=56
    ),
    # The writer.
    "writer: a block is committed before its insert": Slip(
        f"{_STAGE}._flush", "                await inserter.deliver(", "                await self._source.commit(ends); await inserter.deliver(", seed="2100020660.67"),
    "writer: a plan is not replayed": Slip(f"{_STAGE}._restore", "await inserter.replay(block, self._renewer(plan, ours))", "pass", seed="2100020363.36"),
    "writer: a replay reads one record less": Slip(f"{_STAGE}._read_plan", "span.first, span.last)", "span.first, max(span.first, span.last - 1))", seed="2100020363.36"),
    "writer: a commit without an answer is sent again": Slip("broker.commit.commit_once", "consumer._client.send = sent", "pass", seed=2100020542),
    "writer: repeated positions are stored": Slip(f"{_BLOCKS}.Block._feed", "grouped.offset <= source_offset", "grouped.offset < source_offset", seed=2100020245),
    "writer: a put back event moves the position": Slip(f"{_BLOCKS}.Block._feed", "return grouped.offset if origin is None else source_offset", "return grouped.offset", seed="148.56"),
    "writer: a stored event that has expired counts as lost": Slip(f"{_BLOCKS}.Block._feed", "origin is None and grouped.offset < verify_until", "False", seed="533.20"),
    "writer: payload and event days are swapped": Slip(f"{_BLOCKS}.Block._add", "*_stored_days(part.grouped, event))", "*_stored_days(part.grouped, event)[::-1])", seed=5),
    "writer: half a window is a whole one": Slip(f"{_TOKENS}.is_reliable", "(now - then + 1) * _WINDOW_PARTS <= window", "now - then <= 4 * window"),
    "writer: a pause since the plan is not seen": Slip(f"{_TOKENS}.is_reliable", "0 < mark.pauses == state.mark.pauses and", "", seed="2100020553.55"),
    "writer: pauses are not waited for": Slip(f"{_GUARD}._check", "await self._wait_for_pauses()", "False", seed=14),
    "writer: a try that still runs is not waited for": Slip(f"{_GUARD}._check", "await self._wait_for_earlier_tries() or waited", "waited"),
    "writer: an insert may come late": Slip(f"{_GUARD}.__call__", "return session", "return {}", seed="452.63"),
    "writer: a long session is not announced": Slip(f"{_GUARD}._begin_session", "begin_session(client, seconds)", "begin_session(client, 30)", seed="452.63"),
    "writer: a refused block is dropped": Slip(
        f"{_INSERTER}.BlockInserter._complete", "block.rejected.append(block.rejection(row, project, number[::-1], reason))", "pass", seed=705
    ),
    # Completion, repair, erasure, rebuild.
    "completion: payloads are forgotten": Slip(f"{_MISSING}.complete", 'filling.fill("payloads", [row for row in chosen if row not in refused], pause)', "0, {}", seed=1544),
    "completion: erased events come back": Slip(f"{_FILLING}._compare", "known |= stored(", "stored(", seed=17),
    "packs: the others of a pack are forgotten": Slip("storage.exactly_once.unpacking.unpack", "_insert(client, project, packs[first : first + _AT_ONCE])", "pass", seed=4),
    "packs: an erasure leaves them whole": Slip(f"{_USER}._delete_events", 'unpack(client, scope.rows("payloads"), delete)', "pass", seed=4),
    "completion: rollups are not repaired": Slip(f"{_MISSING}.complete", "repaired=repair_rollups(client, set(_days(block)))", "repaired={}", seed=363),
    "repair: only the first project's days": Slip("storage.exactly_once.repair_rollups.repair_rollups", "for project, day in sorted(set(days)):", "for project, day in sorted(set(days))[:1]:", seed=1544),
    "repair: a difference is inserted twice": Slip(
        "storage.exactly_once.repair_rollups._repair", "done = client.raw_insert(", "client.raw_insert(rollup.table, columns, rows, settings=INSERT_SETTINGS, fmt='Native'); done = client.raw_insert(", seed=1544
    ),
    "erasure: events that come again are not forbidden": Slip(f"{_USER}._delete", "client.command(NEVER_AGAIN, parameters=parameters)", "pass", seed=4),
    "erasure: the counts are forgotten": Slip(f"{_USER}._finish", "client.command(COUNT, parameters={\"erasure\": erasure.id})", "pass", seed=4),
    "erasure: rollups are not counted again": Slip(f"{_USER}._erase_week", "repair_where(client, queries, _QUIET_SECONDS)", "pass", seed=4),
    "erasure: it is done before it begins": Slip(f"{_USER}.resume", '("user", "deleting")', '("user", "done")', seed="2100020757.61"),
    "rebuild: positions are forgotten": Slip(f"{_REBUILD}._record", "if offset >= 0}", "if offset < 0}", seed=142),
    "rebuild: the version starts again": Slip(f"{_REBUILD}._record", "newer + (row.version if row else 0)", "newer", seed="5783.43"),
    "rebuild: a row has all changes": Slip(f"{_REBUILD}._record", "change.version > row.version", "False"),
    "rebuild: the version forgets changes": Slip(f"{_REBUILD}._record", ", *(change.version for change in changes), 0)", ", 0)"),
    "merges: a leave keeps the members": Slip("processors.aggregator.issue_merges._leave", "members=_taken(signal)", "members={}"),
    "rebuild: the first of an issue's rows counts": Slip(f"{_REBUILD}.rebuilt", "known.version < row.version", "False"),
    "rebuild: a whole has the text of its part": Slip(f"{_REBUILD}._own_text", 'return replace(row, message="", last_event=bytes(16))', "return row"),
    "rebuild: members are forgotten": Slip("rebuild.rebuilt_merges.Merges.linked", "home is not None and home in by_id", "home is None and home in by_id", seed="5031.45"),
    "rebuild: an undone merge's late signal is applied": Slip("rebuild.rebuilt_merges.Merges.linked", "(*record.life.signals, signal.name)", "record.life.signals", seed="2100020124.940704831.659343180"),
    "rebuild: an erasure that deletes meanwhile passes": Slip("rebuild.from_clickhouse.issues", "if rebuild_queries.erased(client) != erased:", "if False:"),
    "rebuild: an undone merge has no activity": Slip("rebuild.tables._issues", "await write(settings, Topic.ISSUE_ACTIVITY, new.activities)", "pass", seed=6437),
    # Several ClickHouse servers.
    "shards: a partition is on the next server": Slip("storage.shards.Shard.partitions_owned", "== self.number", "== (self.number + 1) % self.count", seed=55),
    "shards: old ids are looked up on the first server": Slip(
        "storage.read.events.stored_ids.StoredIds.among", "shard.partitions_owned(ids)", "(() if shard.number else ids)", seed="15.3.566271409"
    ),
    "shards: an erasure lists the events of one server": Slip(f"{_USER}.erase_user", "for server in servers:", "for server in servers[:1]:", seed=55),
    # The base of the records' stage, completions, erasures and rebuilds.
    "records: a commit skips the next record": Slip(f"{_RECORDS}._write", "records[-1].offset + 1 for", "records[-1].offset + 2 for", seed="76.61"),
    "records: the rows of one topic alone are inserted": Slip(f"{_RECORDS}._write", "in _by_topic(batch).items():", "in list(_by_topic(batch).items())[-1:]:", seed=700266),
    "dead letters: all events of a record count once": Slip(
        f"{_DEAD_LETTERS}._outcome", 'source=f"{_STAGE}/{partition}/{event.id.hex()}"', 'source=f"{_STAGE}/{partition}"', seed="7179.54"
    ),
    "dead letters: a put back event is not accepted again": Slip(
        f"{_DEAD_LETTERS}.put_back_outcomes", 'yield _outcome(event, origin.partition, origin.offset, "accepted", "putBack")', "pass", seed="700367.57"
    ),
    "dead letters: only the first is sent": Slip(f"{_DEAD_LETTERS}.DeadLetterWriter.send", "for record in rejected:", "for record in rejected[:1]:", seed="700367.57"),
    "dead letters: put back events alone count for nothing": Slip(f"{_DEAD_LETTERS}.DeadLetterWriter.send", "if not rejected and not put_back:", "if not rejected:", seed="700367.57"),
    "reads: an insert under way is not seen": Slip(f"{_READS}._insert_state", "if any(scalar(client, RUNNING", "if False and any(scalar(client, RUNNING", seed="2100020171.63"),
    "reads: blocks are not looked for": Slip(f"{_READS}._insert_state", '["", "ingest", *tables]', '["", *tables]', seed="83.20.1000929697.605668656.552209043"),
    "plan: after a block, ids are not compared any more": Slip(f"{_PLAN}.BlockPlan.ends", "r.verify_until if r.verify_until > passed[r.partition] + 1 else -1", "-1", seed="511.17"),
    "plan: the source position is that before the block": Slip(f"{_PLAN}.BlockPlan.ends", "passed[r.partition], r.verify_until if", "r.source_offset, r.verify_until if", seed="700841.42.245456575"),
    "plan: a range ends at its length": Slip(f"{_PLAN}._range", "first, first + more,", "first, max(first, more),", seed=198),
    "plan: how far ids are compared is not recorded": Slip(f"{_PLAN}.encode_plan", "{_optional(' ', state.verify_until)}", "", seed="511.17"),
    "state: a start of the server is not seen": Slip(f"{_STATE}.server_state", "crc32(f\"{run}{replicated or ''}\".encode())", "0", seed=2100020104),
    "erasure: the erased description is told": Slip(f"{_DESCRIPTIONS}.descriptions", "_text(newest), message", "_text(erased), message", seed=700010),
    "erasure: issues keep the description": Slip(f"{_DESCRIPTIONS}.redescribe", "server.whole.command(sql)", "pass", seed="5047.44.822415062"),
    "purge: mutations are not waited for": Slip(f"{_PURGE}.purge", "            await_mutations(client, erasure)\n    return", "            pass\n    return", seed=700000),
    "purge: the first table alone": Slip(f"{_PURGE}.purge", "for table, counts in partitions.items():", "for table, counts in list(partitions.items())[:1]:", seed=700000),
    "rebuild merges: an unread request is forgotten": Slip(f"{_PARTS}.__init__", "self._requested.add(pair)", "pass", seed=700009),
    "rebuild merges: the whole alone is told": Slip(f"{_PARTS}.activities", '((whole, part, of_whole), (part, f"from-{whole}", {"from": whole}))', "((whole, part, of_whole),)", seed="700409.38"),
    "rebuild merges: what a part has sent on is given again": Slip(f"{_PARTS}._forwarded", "in self._wholes(part) if part in records else ():", "in ():"),
    "rebuild ids: all are of the first partition": Slip(f"{_REBUILT_IDS}.IdKeys.add_events", "event_partition(project, identity, self._partitions)", "0", seed="700167.43"),
    "recovery: both stages go on at one offset": Slip(
        f"{_RECOVERY}.next_offsets", "offset = self._aggregator.next_offset(tp.partition)", "offset = self._grouper.next_offset(tp.partition)", seed="1067.64"
    ),
    "agents: a closed fence admits batches": Slip(
        "processors.faust_app.agents.Agent._handle", "self._stage.partitions if self._fence.open else set()", "self._stage.partitions"
    ),
    "recovered: the last piece is forgotten": Slip(f"{_RECOVERED}._pieces", "    if piece:\n        yield piece", "    pass", seed="2100020174.43"),
    "ids: halves of merged runs do not match": Slip(f"{_IDS}._merged", "np.concatenate((left.low, right.low))[order]", "np.concatenate((left.low, right.low))", seed="700799.52"),
    "ids: a full set forgets one": Slip(f"{_IDS}.IdIndex._flush_recent", 'b"".join(self._recent)', 'b"".join(sorted(self._recent)[1:])', seed="700799.52"),
    "ids: ids of the future are kept until their day": Slip(f"{_IDS}.IdIndex.keep", "day + -day % _AHEAD_STEP", "day - 2", seed="700973.49"),
    "ids: a discarded id stays in its run": Slip(f"{_IDS}.IdIndex.discard", "buckets.pop(bucket, ())", "()", seed="700075.52.282857276"),
    "ids: only the newest day is searched": Slip(f"{_IDS}.IdIndex._find", "for buckets in self._runs.values():", "for buckets in list(self._runs.values())[-1:]:", seed="7198.49"),
    "compaction: ids of the future expire with their entry": Slip(f"{_COMPACTING}._expire", "for entry in _left(part, expired, oldest_day)]", "for entry in ()]", seed="1101.50.347783488"),
    "duplicates: their days are forgotten": Slip(
        "storage.maintain.reconcile.duplicates.remove_duplicates",
        "days |= {(int(project), day) for _, _, _, project, day in surplus}", "pass", seed="702.66"
    ),
}  # fmt: skip
