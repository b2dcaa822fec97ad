"""The floors of the processors: reading the same chunks with the bare libraries.

`python -m bench.floors.processors consumer|agent BOOTSTRAP TOPIC RECORDS FOLDER` reads so many records and exits.
"""

import asyncio
import os
import sys
import time
from typing import Any

import faust
import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition

PARTITIONS = 4
_STDOUT = 1


class Clock:
    """Prints the seconds and CPU seconds from the first record to the last."""

    def __init__(self, records: int) -> None:
        self._left = records
        self._started = 0.0
        self._cpu = 0.0

    def read(self, records: int) -> bool:
        """Count records; true after the last ones."""
        if not self._started:
            self._started, self._cpu = time.monotonic(), cpu_seconds(psutil.Process())
        self._left -= records
        if self._left > 0:
            return False
        seconds, cpu = time.monotonic() - self._started, cpu_seconds(psutil.Process()) - self._cpu
        os.write(_STDOUT, f"FLOOR {seconds} {cpu}\n".encode())
        return True


def cpu_seconds(process: psutil.Process) -> float:
    """CPU seconds of a process."""
    times = process.cpu_times()
    return float(times.user + times.system)


async def consumer(bootstrap: str, topic: str, records: int) -> None:
    """A bare aiokafka consumer."""
    reader: AIOKafkaConsumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=4 << 20
    )
    await reader.start()
    reader.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
    clock = Clock(records)
    while True:
        got = await reader.getmany(timeout_ms=1000)
        if got and clock.read(sum(map(len, got.values()))):
            break
    await reader.stop()


def bare_app(bootstrap: str, folder: str) -> faust.App:
    """A Faust app that does nothing by itself."""
    return faust.App(
        "floor",
        broker=f"kafka://{bootstrap}",
        datadir=folder,
        store="memory://",
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        stream_wait_empty=False,
        stream_recovery_delay=0,
        consumer_auto_offset_reset="earliest",
        key_serializer="raw",
        value_serializer="raw",
        broker_max_poll_records=200,
        stream_buffer_maxsize=256,
        consumer_max_fetch_size=4 << 20,
    )


def agent(bootstrap: str, topic: str, records: int, folder: str) -> None:
    """A bare Faust agent that receives and acknowledges."""
    app = bare_app(bootstrap, folder)
    clock = Clock(records)

    @app.agent(app.topic(topic, key_type=bytes, value_type=bytes))
    async def take(stream: Any) -> None:
        async for events in stream.noack_take(120, within=0.02):
            for event in events:
                event.ack()
            if clock.read(len(events)):
                os._exit(0)

    sys.argv = ["floor", "worker", "-l", "warn", "--without-web"]
    app.main()


if __name__ == "__main__":
    form, address, name, count, data = sys.argv[1:6]
    if form == "consumer":
        asyncio.run(consumer(address, name, int(count)))
    else:
        agent(address, name, int(count), data)
