"""`svc spool`: lists quarantined segments of the edge's spool and replays their readable events.

Both commands use the spool of this machine's edges: `edge/spool` in the data directory.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click

from broker.errors import SinkUnavailable
from cli.command_groups import NearestGroup
from cli.console import json_option, output, servers_of
from cli.failures import fail
from cli.workspace import Workspace
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.segment_replay import QuarantinedSegment, listed, replay
from schemas.settings import EdgeSettings

_WAIT_SECONDS = 30.0


@click.group(cls=NearestGroup)
def spool() -> None:
    """Quarantined segments of the edge's disk spool."""


@spool.command("list")
@json_option
@click.pass_obj
def list_(workspace: Workspace, as_json: bool) -> None:
    """List this machine's quarantined segments and the reasons."""
    rows = listed(folder_of(workspace))
    output(
        as_json,
        {"segments": rows},
        lambda: print_segments(rows, "no quarantined segments" if not rows else ""),
    )


@spool.command("replay")
@click.option("--wait", type=click.FloatRange(min=0), default=_WAIT_SECONDS, show_default=True)
@json_option
@click.pass_obj
def replay_(workspace: Workspace, wait: float, as_json: bool) -> None:
    """Replay quarantined segments; the edge may run meanwhile.

    Waits up to --wait seconds for Kafka. Replayed segments are removed; one with unreadable bytes stays, marked as
    `.replayed`. Exit status 1: some events were not sent, or Kafka accepted none; the command may be repeated.
    """
    settings = servers_of(workspace, EdgeSettings)
    rows: list[QuarantinedSegment] = []
    error = asyncio.run(_replay(settings, folder_of(workspace), wait, rows.append))
    sent = f"{sum(row.sent or 0 for row in rows)} events sent"
    output(as_json, {"segments": rows, "error": error}, lambda: print_segments(rows, sent))
    if error:
        fail(f"Kafka at {settings.kafka_bootstrap}: {error}")
    if not all(row.is_done for row in rows):
        sys.exit(1)


async def _replay(
    settings: EdgeSettings, root: Path, wait: float, report: Callable[[QuarantinedSegment], None]
) -> str | None:
    """The error that ended the replay, or None."""
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
    """The folder with the spools of this machine's edges."""
    return workspace.data_dir / "edge" / "spool"


def print_segments(rows: list[QuarantinedSegment], end: str) -> None:
    """A line for each segment, and a last one unless it is empty."""
    for text in (*map(line, rows), *filter(None, [end])):
        click.echo(text)


def line(row: QuarantinedSegment) -> str:
    """One row for people."""
    details = [f"{row.events} events in {row.bytes} bytes"]
    if row.error:
        details = [f"can't be read: {row.error}"]
    if row.unreadable:
        details.append(f"{row.unreadable} unreadable bytes")
    if row.sent is not None:
        details.append(f"{row.sent} sent")
    if row.too_large:
        details.append(f"{row.too_large} too large for the topic")
    if row.replayed:
        details.append("replayed")
    return f"{row.created_at}  {row.reason:<10}  {row.file}  {', '.join(details)}"
