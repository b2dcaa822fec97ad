"""Servers of a run, on free ports and in a fresh folder, and the options that programs share."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cli.demo.sample_events import FILE
from cli.send.send_batches import read_lines
from local.child import Child
from local.local_stack import Stack
from local.ports import free_port
from local.proxies import bypass_proxies
from runtime.supervisor import Supervisor

PORTS: Final = ("SVC_INGEST_PORT", "SVC_DASHBOARD_PORT")

cache_option = click.option(
    "--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars."
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    default=FILE,
    help="JSONL file of events; default: the shipped samples.",
)
folder_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Keep everything here for inspection."
)


def samples_of(data: Path) -> list[dict[str, Any]]:
    """The events of a file."""
    return [msgspec.json.decode(line) for line in read_lines(data)]


def prepare(data_dir: Path, cache: Path, **given: str) -> Stack:
    """A separate stack on free ports, with Kafka's jars from `cache` and the settings in `given`."""
    data_dir.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    if not (data_dir / "cache").exists():
        (data_dir / "cache").symlink_to(cache.resolve())
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return Stack(data_dir.resolve(), environ | {name: str(free_port()) for name in PORTS} | given)


@contextmanager
def kept_or_temporary(data_dir: Path | None) -> Iterator[Path]:
    """The given folder, or one that ends with the run. Its servers are reached without the machine's proxy."""
    bypass_proxies(os.environ)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield data_dir or Path(folder)


@asynccontextmanager
async def supervised(children: Iterable[Child]) -> AsyncIterator[Supervisor]:
    """Children from their start, in order, to their end."""
    supervisor = Supervisor([*children])
    try:
        await supervisor.start()
        yield supervisor
    finally:
        await supervisor.stop()


def headers(token: str, *, zipped: bool = False) -> dict[str, str]:
    """The headers of a request with events."""
    encoding = {"Content-Encoding": "gzip"} if zipped else {}
    return {
        "Authorization": f"Bearer {token}",
        "Svc-Sdk": "bench/1",
        "Content-Type": "application/json",
        **encoding,
    }
