"""`svc up`: everything on this machine, until Ctrl-C or SIGTERM."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
from rich.console import Console

from cli.doctor.damage import check_damage
from cli.workspace import Workspace
from local.board import Board
from local.data_dir import locked
from local.discovery import published
from local.stack import PASSWORD_FILE, Stack
from local.supervisor import Supervisor
from schemas.errors import BadSetting, CannotRun

BAD_SETTING = 2
FAILED = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def announce(stack: Stack, console: Console) -> None:
    """Say where everything is and what to do next."""
    password = stack.data_dir / PASSWORD_FILE
    console.print(f"\ndashboard   {stack.dashboard_url}  (user admin)", highlight=False, soft_wrap=True)
    if stack.environ.get("SVC_ADMIN_PASSWORD_FILE") == str(password):
        console.print(
            f"password    {password.read_text().strip()}  (kept in {password})",
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"ingest      {stack.ingest_url}/v1/events", highlight=False, soft_wrap=True)
    if (stack.data_dir / "clickhouse" / "ports.json").exists():
        console.print(
            "sql         `svc analysts connect` says how to query it", highlight=False, soft_wrap=True
        )
    console.print(f"logs        {stack.data_dir / 'log'}", highlight=False, soft_wrap=True)


def tell_damage(url: str, console: Console) -> None:
    """Say what a full or failing disk has cost, and what to do about it; nothing where all is well."""
    for finding in check_damage(url):
        if not finding.ok:
            text = f"\n{finding.said}: {finding.mend}"
            console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


async def run(
    stack: Stack, console: Console, then: Callable[[asyncio.Event], Awaitable[int]] | None = None
) -> int:
    """Start everything, run `then` (which gets the event that says stop) or wait for a signal, and stop everything.

    Returns the exit code: that of `then`, 0 after a signal. Raises CannotRun when something didn't start.
    """
    board = Board(console)
    supervisor = Supervisor(stack.children(), board.changed)
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, supervisor.request_stop)
    code = 0
    try:
        with board.live():
            await supervisor.start()
        if not supervisor.stopping.is_set():
            announce(stack, console)
            await asyncio.to_thread(tell_damage, stack.environ["SVC_CLICKHOUSE_URL"], console)
            with published(stack.data_dir, stack.variables):
                code = await _until_stopped(supervisor, then)
    finally:
        await supervisor.stop()
    return code


async def _until_stopped(
    supervisor: Supervisor, then: Callable[[asyncio.Event], Awaitable[int]] | None
) -> int:
    if then is not None:
        return await then(supervisor.stopping)
    await supervisor.stopping.wait()
    return 0


def start(
    data_dir: Path,
    console: Console,
    edge_workers: int | None = None,
    then: Callable[[Stack, asyncio.Event], Awaitable[int]] | None = None,
) -> int:
    """Hold the data directory and run everything on it; the exit code. Trouble is said in one line, never as a traceback."""
    try:
        with locked(data_dir):
            stack = Stack(data_dir, os.environ, edge_workers)
            stack.check_ports()
            after = None if then is None else lambda stopping: then(stack, stopping)
            return asyncio.run(run(stack, console, after))
    except BadSetting as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return BAD_SETTING
    except (CannotRun, OSError) as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return FAILED


@click.command()
@click.option("--edge-workers", type=click.IntRange(1), help="Processes that share the ingest port.")
@click.pass_obj
def up(workspace: Workspace, edge_workers: int | None) -> None:
    """Run everything on this machine: Kafka and ClickHouse where no address is set, and our processes."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    sys.exit(start(workspace.data_dir, Console(), edge_workers))
