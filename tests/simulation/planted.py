"""Faults planted in the product: the more it finds, the better the simulation."""

import gc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from broker.client import open_consumer, records_before
from edge.delivery import drain, segments
from edge.delivery.drain import OpenedSegment
from processors.grouper.grouper_stage import GrouperStage
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.exactly_once.blocks import Block
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.source_values import open_source_values
from storage.write.source import GroupedSource
from tests.simulation.clickhouse_tables import Table
from tests.simulation.clickhouse_work import Work
from tests.simulation.draws import Reached
from tests.simulation.kafka_clients import Client
from tests.simulation.plan import Seed
from tests.simulation.probes import PROBES
from tests.simulation.run import run
from tests.simulation.slips import SLIPS, probe_of, slipped

_AT_ONCE: Final = 100
_WINDOW: Final = 2
_ALL: Final = 1 << 40
_ranges = GroupedSource.ranges
_restore = GrouperStage.restore
_remember = Table.remember


async def _acknowledge_at_once(*_: Any) -> None:
    """The edge answers before Kafka or the disk has the events."""


async def _close_nothing(*_: Any) -> None:
    """Batches in progress go on while the group gives their partitions away."""


def _read_past(self: GroupedSource, spans: Mapping[int, tuple[int, int]]) -> AsyncIterator[Any]:
    """A replay also reads the records after the planned ones."""
    logs = Client.network.broker.topics[self.topic]
    return _ranges(self, {p: (first, max(last, logs[p].end - 1)) for p, (first, last) in spans.items()})


def _forget(self: Table, partition: Any, token: str) -> None:
    """The server remembers two tokens."""
    self.window = _WINDOW
    _remember(self, partition, token)


async def _complete_all(settings: WriterSettings, client: Any, _: date) -> dict[str, int]:
    """A repair inserts missing rows itself, up to the end of the log."""
    block, seen = Block(), dict[int, int]()
    async with open_consumer(settings, Topic.GROUPED) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        async with open_source_values(settings, [tp.partition for tp in ends]) as sources:
            async for record in records_before(consumer, ends):
                [source] = await sources.of([record])
                seen[record.partition] = block.feed(record, source, seen.get(record.partition, -1))
    if len(block):
        complete(client, block.columns.table(), "repair")
    return {}


async def _restore_and_skip(self: GrouperStage, partition: int, start: int, end: int) -> int:
    """After a recovery, the grouper goes on behind the next record."""
    restored = await _restore(self, partition, start, end)
    state = self._states[partition]
    if 0 < state.next_offset < end:
        state.next_offset += 1
    return restored


def _among_none(*_: Any) -> Work:
    """No event counts as erased."""
    yield 0.0
    return []


async def _all_sources(*_: Any) -> dict[int, int]:
    """ClickHouse counts as if it had all of `events`."""
    return {log.partition: log.end - 1 for log in Client.network.broker.topics["svc.events"]}


async def _send_nothing(*_: Any) -> dict[str, int]:
    """A repair sends nothing again."""
    return {}


def _open_until_damage(segment: Path, acknowledged: int = 0) -> OpenedSegment:
    """A segment ends, for the drain, at the first record that can't be read."""
    data = segment.read_bytes()
    chunks, offset = [], 0
    while (record := segments.record_at(data, offset)) is not None:
        chunks.append(drain.record_events(record))
        offset += segments.size_of(record)
    return OpenedSegment(chunks, 0)


class Fault(NamedTuple):
    """Replacements of parts of the product, by their names, and a seed that finds them."""

    replacements: dict[str, Any]
    seed: Seed


FAULTS: Final = {
    "an acknowledgement before the write": Fault(
        {"edge.delivery.publisher.EventPublisher.wait_stored": _acknowledge_at_once}, seed="7006.1"
    ),
    "a replay past the plan": Fault(
        {
            "storage.write.source.GroupedSource.ranges": _read_past,
            # Otherwise the look at the stored rows would catch it.
            "storage.write.block_inserter.any_known": lambda client, rows: False,
        },
        seed="3005.36",
    ),
    "a token window of 2": Fault(
        {
            "tests.simulation.clickhouse_tables.Table.remember": _forget,
            "storage.exactly_once.server_state.deduplication_window": lambda engine: _ALL,
        },
        seed=74,
    ),
    "a dropped fence": Fault(
        {
            "processors.faust_app.fence.Lease.check": lambda self: None,
            "processors.faust_app.fence.RebalanceFence.stop_batches": _close_nothing,
            "processors.changelog.Changelog.open": _close_nothing,
            "processors.changelog.PartitionLog.wrote": lambda self, batches: None,
            "processors.aggregator.aggregator_stage.supersedes": lambda value, stored: True,
            "tests.simulation.worker.supersedes": lambda value, stored: True,
        },
        seed="15.3",
    ),
    "a repair that reads to the end of the log": Fault(
        {"storage.maintain.reconcile.repair_differences.send_missing": _complete_all},
        seed=13,
    ),
    "an offset skipped after a recovery": Fault(
        {"processors.grouper.grouper_stage.GrouperStage.restore": _restore_and_skip}, seed=452
    ),
    "a segment removed although a record is torn": Fault(
        {"edge.delivery.drain.open_segment": _open_until_damage}, seed="2100020138.34"
    ),
    "a repair that sends nothing": Fault(
        {"storage.maintain.reconcile.repair_differences.send_missing": _send_nothing}, seed=13
    ),
    "an erasure that forgets payloads": Fault(
        {"storage.maintain.erase.erase_user.EVENT_TABLES": ("events",)}, seed=4
    ),
    "an erasure that is not resumed": Fault(
        {"storage.maintain.erase.erase_user.resume": lambda *_: []}, seed=145
    ),
    "an erasure that does not redact": Fault({"control.erasure.send_redactions": lambda *_: None}, seed=4),
    "a rebuild that takes ClickHouse for complete": Fault(
        {"rebuild.from_clickhouse.source_ends": _all_sources}, seed=94
    ),
    "erased ids that may come again": Fault(
        {"tests.simulation.erasing.Erasing._among": _among_none}, seed=853
    ),
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """Put a fault into the product."""
    with ExitStack() as stack:
        if fault in SLIPS:
            stack.enter_context(slipped(SLIPS[fault]))
            yield
            return
        for name, replacement in FAULTS[fault].replacements.items():
            stack.enter_context(patch(name, replacement))
        yield


def finds(fault: str, seed: Seed) -> bool:
    """Whether a schedule breaks with the fault, and holds without it."""
    if not _breaks(fault, seed):
        return False
    run(seed)
    return True


def _breaks(fault: str, seed: Seed) -> bool:
    with planted(fault):
        try:
            run(seed)
        except Exception:  # noqa: BLE001 - any failure is a find
            return True
    return False


_RARE: Final = {"a repair that reads to the end of the log"}
FEW: Final = (
    *(name for name in FAULTS if name not in _RARE),
    *{name.partition(":")[0]: name for name, slip in SLIPS.items() if slip.seed is not None}.values(),
)
"""A selection: of the slips one of each area, and nothing that takes many schedules."""
ALL: Final = (*FAULTS, *SLIPS)


def known(fault: str) -> Seed | None:
    """The seed that is known to find a fault, if it still does."""
    seed = (FAULTS.get(fault) or SLIPS[fault]).seed
    return seed if seed is not None and finds(fault, seed) else None


def find(
    fault: str, runs: Sequence[tuple[Seed, Reached]], counts: Mapping[int | str, int]
) -> tuple[Seed | None, int]:
    """The first of the runs that meet a fault's statement and find it; and how many meet it.

    `runs` held without the fault. First come those that meet the most seldom met blocks of the fault's module.
    """
    module, probe = probe_of(SLIPS[fault]) if fault in SLIPS else ("", None)
    meeting = [run for run in runs if probe is None or probe in run[1]]

    def depth(one: tuple[Seed, Reached]) -> float:
        return -sum(1 / counts[n] for n in one[1] if isinstance(n, int) and PROBES[n].module == module)

    for number, (seed, _) in enumerate(sorted(meeting, key=depth)):
        if number % _AT_ONCE == 0:
            # In the middle of schedules it takes a quarter of the time.
            gc.collect()
            gc.disable()
        if _breaks(fault, seed):
            return seed, len(meeting)
    return None, len(meeting)
