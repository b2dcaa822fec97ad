"""A bare Faust worker with one table that prints which offsets it is given; with or without the cure.

Its seek at the end of a recovery is late, as on a busy machine: records that flow before the seek show every
time and not by luck.

Arguments: bootstrap, topic prefix, data folder, `cured` or `bare`.
"""

import json
import os
import sys
import time
import weakref
from typing import Any

import faust
from faust.streams import _current_event
from faust.tables.manager import TableManager
from faust.transport.consumer import RecordMap
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP
from mode import CrashingSupervisor

from processors.faust_app.patches import OrderedTableManager

PARTITIONS = 2
TAKE = 40
RECORD_BYTES = 5_000
FETCH_BYTES = 200 * RECORD_BYTES
"""So few records that a start goes through several fetches."""
BUSY_SECONDS = 0.03
LATE_SECONDS = 3.0
STDOUT = 1


class LateConsumer(Consumer):
    """A consumer that seeks only once records of the source have come, or after a while in which none did."""

    _come = False

    async def _wait_next_records(self, timeout: float) -> tuple[RecordMap | None, set[TP] | None]:
        records, active = await super()._wait_next_records(timeout)
        self._come = self._come or any(tp.topic.endswith("source") for tp in records or ())
        return records, active

    async def perform_seek(self) -> None:
        """Seek late; everything else goes on meanwhile."""
        end = time.monotonic() + LATE_SECONDS
        while not self._come and time.monotonic() < end:
            await self.sleep(0.05)
        await super().perform_seek()


def build(bootstrap: str, prefix: str, folder: str, manager: type[TableManager]) -> faust.App:
    """An app that takes records, writes a table entry for each partition, and acknowledges."""
    app = faust.App(
        f"{prefix}skip",
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=folder,
        TableManager=manager,
        agent_supervisor=CrashingSupervisor,
        topic_partitions=PARTITIONS,
        topic_disable_leader=True,
        topic_allow_declare=False,
        web_enabled=False,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=f"{prefix}skip-0",
        key_serializer="raw",
        value_serializer="raw",
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
        broker_session_timeout=10.0,
        broker_heartbeat_interval=2.0,
        broker_commit_interval=1.0,
        broker_max_poll_records=200,
        stream_buffer_maxsize=256,
        consumer_max_fetch_size=FETCH_BYTES,
    )
    app.transport.Consumer = LateConsumer  # type: ignore[misc]  # this instance's own
    source = app.topic(f"{prefix}source", key_type=bytes, value_type=bytes)
    log = app.topic(f"{prefix}table", key_type=bytes, value_type=bytes, acks=False, internal=True)
    table: Any = app.Table(
        "table", key_type=bytes, value_type=bytes, partitions=PARTITIONS, changelog_topic=log
    )

    @app.agent(source)
    async def group(stream: Any) -> None:
        async for events in stream.noack_take(TAKE, within=0.1):
            # Faust's worker takes `print` over.
            line = json.dumps([[e.message.partition, e.message.offset] for e in events])
            os.write(STDOUT, line.encode() + b"\n")
            end = time.monotonic() + BUSY_SECONDS
            while time.monotonic() < end:
                pass
            for event in {e.message.partition: e for e in events}.values():
                _current_event.set(weakref.ref(event))
                table[b"%d/%d" % (event.message.partition, event.message.offset)] = b"x" * 500
            for event in events:
                event.ack()

    return app


if __name__ == "__main__":
    chosen = OrderedTableManager if sys.argv[4] == "cured" else TableManager
    made = build(sys.argv[1], sys.argv[2], sys.argv[3], chosen)
    sys.argv = ["skip", "worker", "-l", "warn", "--without-web"]
    made.main()
