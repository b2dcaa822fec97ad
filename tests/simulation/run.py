"""Runs a schedule: the models replace the servers of the product, until everything is settled and checked."""

import asyncio
import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch

from processors.grouper.id_index import IdIndex
from tests.simulation import kafka_clients
from tests.simulation.aims import aimed
from tests.simulation.clickhouse_client import Client
from tests.simulation.clickhouse_shards import at
from tests.simulation.kafka_consumer import Consumer
from tests.simulation.kafka_producer import Producer
from tests.simulation.kept import plan_of
from tests.simulation.plan import Seed
from tests.simulation.schedule import Schedule
from tests.simulation.virtual_time import clocks_of
from tests.simulation.world import EPOCH

_MEMORY: Final = Path("/dev/shm")
_RECENT_KEYS: Final = 2
"""Keys that the index of ids holds unsorted, where everything is tiny."""


class Executor:
    """A thread pool whose threads the loop simulates."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do it now: only closing is submitted."""
        work(*arguments)

    def map(self, work: Callable[..., Any], arguments: Iterable[Any]) -> list[Any]:
        """Do one after the other: for the model it makes no difference which of several servers works first."""
        return [work(argument) for argument in arguments]

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Nothing to stop."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to stop."""


async def _nothing(*_: Any) -> None:
    """Replaces parts that no schedule looks at."""


@cache
def _target(name: str) -> tuple[Any, str]:
    """A module, and the name in it."""
    module, _, attribute = name.rpartition(".")
    return import_module(module), attribute


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave garbage where it is: when it is found depends on the schedules before."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@contextmanager
def models(schedule: Schedule) -> Iterator[None]:
    """Put the models where the product connects to servers."""
    kafka_clients.Client.network = schedule.network
    random = schedule.world.random

    def get_client(**options: Any) -> Client:
        target = at(schedule.servers, options["host"], options["database"])
        return Client(target, lambda: 0.0005 + 0.001 * random.random(), options["send_receive_timeout"])

    replacements: dict[str, Any] = {
        "broker.client.Consumer": Consumer,
        "broker.client.Producer": Producer,
        "broker.client.Admin": kafka_clients.Admin,
        "clickhouse_connect.get_client": get_client,
        # The first statement tells whether a server answers.
        "storage.shards.answers": lambda *_: True,
        "storage.write.inserter.ThreadPoolExecutor": Executor,
        "storage.read.events.stored_ids.ThreadPoolExecutor": Executor,
        "edge.delivery.spool.ThreadPoolExecutor": Executor,
        "storage.maintain.erase.erase_user.ThreadPoolExecutor": Executor,
        "uuid.uuid4": lambda: uuid.UUID(int=random.getrandbits(128)),
        # A schedule's leftovers must not stay, and a recovery must not begin to look for garbage.
        "gc.freeze": lambda: None,
        "gc.disable": lambda: None,
        "gc.enable": lambda: None,
        # Metrics alone.
        "storage.write.events_stage.show_lag": _nothing,
        "click.echo": lambda *_, **__: None,
        # The hash of a user's id is slow on purpose.
        "storage.maintain.erase.ledger.COST": {"n": 2, "r": 1, "p": 1},
        "storage.maintain.reconcile.repair_differences.today": lambda: datetime.fromtimestamp(
            EPOCH + schedule.world.now, UTC
        ).date(),
    }
    if schedule.shape.low:
        replacements |= {
            "processors.grouper.compaction.MERGE_AT": 2,
            "processors.grouper.recovered.PIECE_BYTES": 1,
            "processors.grouper.log_clock.DAY_RECORDS": 1,
        }
    if schedule.shape.tiny:
        replacements |= {
            "tests.simulation.pipeline.CHUNK_EVENTS": 1,
            "tests.simulation.pipeline.BLOCK_ROWS": 3,
            "storage.write.events_stage._READ_RECORDS": 2,
            "processors.faust_app.processors_app.DELTAS_BATCH": 2,
            "edge.delivery.spool.SEGMENT_BYTES": 600,
            "edge.delivery.drain.BATCH_EVENTS": 2,
            "processors.grouper.record_counts.MAX_TOGETHER": 1,
            "processors.grouper.dedupe.IdIndex": partial(IdIndex, _RECENT_KEYS),
            "processors.grouper.grouped_tail.MIN_REPLAYED": 1,
            "processors.aggregator.aggregator_stage.CACHED_FOLDS": 2,
        }
    with (
        clocks_of(schedule.world),
        schedule.disk.mounted(),
        aimed(schedule),
        _uncollected(),
        ExitStack() as stack,
    ):
        for name, replacement in replacements.items():
            stack.enter_context(patch.object(*_target(name), replacement))
        yield


def run(seed: Seed, without: frozenset[int] = frozenset(), story: list[str] | None = None) -> Schedule:
    """Run a schedule, without some entries of its plan. Raises Broken, Livelock, and forbidden errors of processes."""
    shape, entries = plan_of(seed)
    entries = [entry for number, entry in enumerate(entries) if number not in without]
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=memory))
    schedule = Schedule(seed, shape, entries, folder)
    with models(schedule):
        try:
            schedule.start()
            schedule.world.run()
            schedule.check()
        finally:
            if story is not None:
                story += schedule.world.log
            schedule.world.close()
            asyncio.set_event_loop(None)
            shutil.rmtree(folder, ignore_errors=True)
    return schedule
