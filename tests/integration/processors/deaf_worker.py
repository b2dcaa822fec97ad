"""A worker that stops fetching without noticing once a file `deaf` is in its folder; it looks at itself more often than others."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import aiokafka.consumer.consumer
from aiokafka.consumer.fetcher import Fetcher

import processors.__main__
import processors.ends
import processors.worker

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
    """What `run` does, with that."""
    ended = threading.Event()
    waiting = asyncio.create_task(asyncio.to_thread(deafen, Path(os.environ["SVC_DATA_DIR"]) / "deaf", ended))
    try:
        await processors.worker.run(*arguments)
    finally:
        ended.set()
        await waiting


def main() -> None:
    """`svc processors`, changed."""
    changed: Any
    for changed, name, value in (
        (aiokafka.consumer.consumer, "Fetcher", DeafFetcher),
        (processors.ends, "ASK_SECONDS", 1.0),
        (processors.worker, "STALL_SECONDS", 8.0),
        (processors.__main__, "run", deaf),
    ):
        setattr(changed, name, value)
    processors.__main__.command()


if __name__ == "__main__":
    main()
