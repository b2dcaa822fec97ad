"""A worker whose machine falls asleep between a decision and its record, once a file `sleep` is in its folder.

No clock shows the sleep: the lease never expires.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from cli import processors
from processors.changelog import OWNER_KEY
from processors.faust_app.fence import Lease

_write = BatchProducer.write


async def write(
    self: BatchProducer, topic: str, partition: int, messages: Sequence[Message]
) -> list[WrittenBatch]:
    """The producer's `write`, after the sleep."""
    file = Path(os.environ["SVC_DATA_DIR"]) / "sleep"
    if topic.endswith("seen") and messages[0].key != OWNER_KEY and file.exists():
        file.rename(file.with_name("asleep"))
        os.kill(os.getpid(), signal.SIGSTOP)
    return await _write(self, topic, partition, messages)


def main() -> None:
    """`svc processors`, changed."""
    changed: Any
    for changed, name, value in ((BatchProducer, "write", write), (Lease, "check", lambda _: None)):
        setattr(changed, name, value)
    processors.command()


if __name__ == "__main__":
    main()
