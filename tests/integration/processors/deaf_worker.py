"""A worker that stops fetching, without noticing, once a file `deaf` is in its folder.

It checks itself more often than other workers.
"""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import aiokafka.consumer.consumer
from aiokafka.consumer.fetcher import Fetcher

from broker import log_end_offsets
from cli import processors
from processors.faust_app import worker

FETCHERS: list[Any] = []


class DeafFetcher(Fetcher):  # type: ignore[misc]  # the library's has no types
    """Known, so that its fetching can be ended."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        FETCHERS.append(self)


def deafen(file: Path, ended: threading.Event) -> None:
    """End all fetching once the file is there, and rename it."""
    while not file.exists():
        if ended.wait(0.1):
            return
    for fetcher in FETCHERS:
        fetcher._fetch_task.get_loop().call_soon_threadsafe(fetcher._fetch_task.cancel)
    ended.wait(1)
    file.rename(file.with_name("deafened"))


async def deaf(*arguments: Any) -> None:
    """`run_processors`, deafened on request."""
    ended = threading.Event()
    waiting = asyncio.create_task(asyncio.to_thread(deafen, Path(os.environ["SVC_DATA_DIR"]) / "deaf", ended))
    try:
        await worker.run_processors(*arguments)
    finally:
        ended.set()
        await waiting


def main() -> None:
    """`svc processors`, changed."""
    changed: Any
    for changed, name, value in (
        (aiokafka.consumer.consumer, "Fetcher", DeafFetcher),
        (log_end_offsets, "POLL_SECONDS", 1.0),
        (worker, "STALL_SECONDS", 8.0),
        (processors, "run_processors", deaf),
    ):
        setattr(changed, name, value)
    processors.command()


if __name__ == "__main__":
    main()
