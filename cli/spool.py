"""`svc spool`: segments of an edge's spool that were set aside, and sending again what can be had of them.

Both look into the folder of this machine's edges: `edge/spool` under the data directory.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click

from broker.errors import SinkUnavailable
from cli.console import need_kafka, print_json, settings_of
from cli.workspace import Workspace
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.replay import QuarantinedSegment, listed, replay
from schemas.settings import EdgeSettings

_WAIT_SECONDS = 30.0


@click.group()
def spool() -> None:
    """Segments of the edge's disk spool that were set aside."""


@spool.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def list_(workspace: Workspace, as_json: bool) -> None:
    """List what was set aside on this machine, and why."""
    found = listed(folder_of(workspace))
    if as_json:
        print_json({"segments": found})
        return
    for row in found:
        click.echo(line(row))
    if not found:
        click.echo("nothing is set aside")


@spool.command("replay")
@click.option("--wait", type=click.FloatRange(min=0), default=_WAIT_SECONDS, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def replay_(workspace: Workspace, wait: float, as_json: bool) -> None:
    """Send again what was set aside; the edge may run meanwhile.

    Waits up to --wait seconds for Kafka. What was sent is removed; where bytes are left that hold no event, the file stays, marked
    as `.replayed`. Exit status 1: something is left that was not sent, or Kafka took nothing; it may be run again.
    """
    settings = settings_of(workspace, EdgeSettings)
    need_kafka(settings.kafka_bootstrap)
    rows: list[QuarantinedSegment] = []
    trouble = asyncio.run(_replay(settings, folder_of(workspace), wait, rows.append))
    if as_json:
        print_json({"segments": rows, "error": trouble})
    else:
        for row in rows:
            click.echo(line(row))
        click.echo(f"{sum(row.sent or 0 for row in rows)} events sent")
    if trouble:
        click.echo(f"svc: Kafka at {settings.kafka_bootstrap}: {trouble}", err=True)
    if trouble or not all(row.is_done for row in rows):
        sys.exit(1)


async def _replay(
    settings: EdgeSettings, root: Path, wait: float, report: Callable[[QuarantinedSegment], None]
) -> str | None:
    """What kept it from going on, or None."""
    sink = KafkaSink(settings, settings.edge_send_deadline_seconds)
    await sink.start()
    try:
        await replay(root, sink, wait, report)
    except SinkUnavailable as error:
        return str(error)
    finally:
        await sink.stop()
    return None


def folder_of(workspace: Workspace) -> Path:
    """Where the spools of this machine's edges are."""
    return workspace.data_dir / "edge" / "spool"


def line(row: QuarantinedSegment) -> str:
    """One row for people."""
    told = [f"{row.events} events in {row.bytes} bytes"]
    if row.error:
        told = [f"can't be read: {row.error}"]
    if row.unreadable:
        told.append(f"{row.unreadable} bytes hold none")
    if row.sent is not None:
        told.append(f"{row.sent} sent")
    if row.too_large:
        told.append(f"{row.too_large} too large for the topic")
    if row.replayed:
        told.append("replayed")
    return f"{row.created_at}  {row.reason:<10}  {row.file}  {', '.join(told)}"
