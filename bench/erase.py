"""Time and memory of the erasure of one user.

    python -m bench.erase --events 1280000 --share 0.8      # the largest plausible user
    python -m bench.erase --events 1000000 --share 0.0001   # a typical user

A local ClickHouse is started. `floor` is the server's time to rewrite the parts of `events` and `payloads`.
"""

import resource
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from local.clickhouse.server import LocalClickHouse
from schemas.ids import user_hash
from storage.client import Client, open_client, scalar
from storage.erase.user import erase_user
from storage.migrations.migrate import migrate
from storage.shards import alone

PROJECT, USER = 7, "erased"
_BLOCK: Final = 160_000
_INSERT: Final = """
    INSERT INTO ingest (project_id, fingerprint, ts, id, received, user_id, user_hash, tags, retention_days, payload_days, payload,
        release, environment, message)
    SELECT {project}, cityHash64(number) % 3000, now64(3) - toIntervalMinute(cityHash64(number, 1) % 43200), number, now(),
        if(theirs, '{user}', concat('u', toString(number % 5000))), if(theirs, {hash}, number % 5000 + 1),
        map('a', toString(number % 2), 'b', toString(number % 50), 'c', toString(number % 1000), 'd', 'x', 'e', 'y',
            'f', toString(number % 7), 'g', 'z', 'request', toString(number)),
        90, 30, randomString(650), concat('r', toString(number % 20)), concat('e', toString(number % 3)),
        concat('Cannot read ', toString(number))
    FROM (SELECT number, cityHash64(number, 2) % 100000 < {share} AS theirs FROM numbers({first}, {count}))"""
_PEAK: Final = """
    SELECT max(memory_usage) FROM system.query_log
    WHERE type = 'QueryFinish' AND event_time >= fromUnixTimestamp({since:Int64})"""


def fill(client: Client, events: int, share: float) -> None:
    """Insert events in blocks, a share of them of the user."""
    for first in range(0, events, _BLOCK):
        client.command(
            _INSERT.format(
                project=PROJECT,
                user=USER,
                hash=user_hash(PROJECT, USER),
                share=round(share * 100_000),
                first=first,
                count=min(_BLOCK, events - first),
            )
        )


def floor(client: Client) -> float:
    """Seconds for a mutation of both tables that deletes almost nothing."""
    began = time.monotonic()
    for table in ("events", "payloads"):
        client.command(
            f"ALTER TABLE {table} DELETE WHERE id % 1000003 = 1000002", settings={"mutations_sync": 1}
        )
    return time.monotonic() - began


@click.command()
@click.option("--events", default=1_280_000, show_default=True)
@click.option("--share", default=0.8, show_default=True, help="The user's share of the events.")
def main(events: int, share: float) -> None:
    """Print seconds, rows, bytes and memory."""
    with tempfile.TemporaryDirectory() as folder:
        server = LocalClickHouse(Path(folder) / "clickhouse").start()
        try:
            migrate(server.url())
            client = open_client(server.url(), send_receive_timeout=3600)
            fill(client, events, share)
            click.echo(f"floor: {floor(client):.1f} s")
            since, began = int(time.time()), time.monotonic()
            report = erase_user(
                alone(client),
                PROJECT,
                USER,
                "bench",
                lambda: None,
                lambda _, __: None,
                click.echo,
            )
            click.echo(f"{report.events:,} events erased in {time.monotonic() - began:.1f} s")
            for one in report.tables:
                click.echo(
                    f"{one.table:<14}{one.rows_before:>12,} rows -> {one.rows_after:>10,}"
                    f"{one.bytes_before:>15,} bytes -> {one.bytes_after:>13,}"
                )
            client.command("SYSTEM FLUSH LOGS")
            server_mb = int(scalar(client, _PEAK, {"since": since})) / 1e6
            mine_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            click.echo(f"peak: {server_mb:.0f} MB a statement, {mine_mb:.0f} MB in this process")
            client.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
