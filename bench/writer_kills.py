"""`python -m bench.writer_kills`: repeatedly kills writers and ClickHouse (`kill -9`) while a backlog is written.

Prints what every table and rollup holds beside what was sent, once with tables that remember as many tokens as they do in production and
once with tables that remember so few that tokens are forgotten before their blocks are repeated. Exit status 1 when anything differs.
"""

import asyncio
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path

import click

from local.clickhouse.server import LocalClickHouse
from local.kafka.server import LocalKafka
from tests.integration.storage.grouped import Stage
from tests.integration.storage.killing import kill_often, shorten

EVENTS_A_CHUNK = 100


@click.command()
@click.option("--events", default=200_000, show_default=True, help="Events of the backlog.")
@click.option("--kills", default=20, show_default=True, help="Kills of writers.")
@click.option("--server-kills", default=2, show_default=True, help="How many of these kill ClickHouse.")
@click.option("--rows", default=2_000, show_default=True, help="Rows of a block.")
@click.option("--window", "windows", type=int, multiple=True, default=(10_000, 4), show_default=True)
@click.option("--seed", type=int, help="For the times of the kills; default: random.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def main(
    events: int,
    kills: int,
    server_kills: int,
    rows: int,
    windows: tuple[int, ...],
    seed: int | None,
    cache: Path,
) -> None:
    """Kill processes, and verify the counts."""
    seed = secrets.randbelow(1 << 31) if seed is None else seed
    random.seed(seed)
    click.echo(f"{events} events, seed {seed}")
    exact = [asyncio.run(_run(events, kills, server_kills, rows, window, cache)) for window in windows]
    sys.exit(0 if all(exact) else 1)


async def _run(events: int, kills: int, server_kills: int, rows: int, window: int, cache: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        kafka = LocalKafka(Path(folder) / "kafka", cache)
        server = LocalClickHouse(Path(folder) / "clickhouse")
        try:
            await asyncio.to_thread(kafka.start)
            await asyncio.to_thread(server.start)
            stage = await Stage(kafka.bootstrap, server.url(), "kills.", Path(folder)).prepare()
            shorten(stage, window)
            await stage.produce(events // EVENTS_A_CHUNK, events=EVENTS_A_CHUNK)
            began = time.monotonic()
            done = await kill_often(stage, server, kills=kills, server_kills=server_kills, rows=rows)
            seconds = time.monotonic() - began
        finally:
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(kafka.stop)
    click.echo(
        f"window {window}: {done.writers} kills of writers, {done.servers} of ClickHouse, {seconds:.0f} s; "
        f"{done.repeated} blocks repeated, {done.completed} completed by looking"
    )
    for name, count in done.found.items():
        click.echo(
            f"  {name:18} {count:9,} of {done.wanted[name]:9,}{'' if count == done.wanted[name] else '   DIFFERS'}"
        )
    return done.found == done.wanted


if __name__ == "__main__":
    main()
