"""`svc up`: runs everything on this machine until Ctrl-C or SIGTERM."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import click
from rich.console import Console

from cli.doctor.basic_checks import CORRECT_SETTING
from cli.doctor.damage_check import check_damage
from cli.workspace import Workspace
from local.board import Board
from local.data_dir import locked
from local.discovery import published
from local.local_stack import PASSWORD_FILE, Stack
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.errors import BadSetting, CannotRun
from schemas.settings import MigrateSettings

BAD_SETTING = 2
FAILED = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def announce(stack: Stack, console: Console) -> None:
    """Print the addresses, the password and the log folder."""
    password = stack.data_dir / PASSWORD_FILE
    lines = [f"\ndashboard   {stack.dashboard_url}  (user admin)"]
    if stack.environ.get("SVC_ADMIN_PASSWORD_FILE") == str(password):
        lines.append(f"password    {password.read_text().strip()}  (stored in {password})")
    lines.append(f"ingest      {stack.ingest_url}")
    if (stack.data_dir / "clickhouse" / "ports.json").exists():
        lines.append("sql         `svc analysts connect` prints the connection details")
    lines.append(f"logs        {stack.data_dir / 'log'}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def print_error(console: Console, text: str) -> None:
    """Print a line in red."""
    console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def warn_of_damage(environ: Mapping[str, str], console: Console) -> None:
    """Print rows lost to a full or failing disk, and the repair."""
    for finding in check_damage(load(MigrateSettings, environ), seconds=0):
        if not finding.ok:
            print_error(console, f"\n{finding.message}: {finding.fix}")


async def run_stack(
    stack: Stack, console: Console, then: Callable[[asyncio.Event], Awaitable[int]] | None = None
) -> int:
    """Start everything, run `then` (with the stop event) or wait for a signal, and stop everything.

    Returns the exit code: that of `then`, or 0 after a signal. Raises CannotRun if a child doesn't start.
    """
    board = Board(console)
    supervisor = Supervisor(stack.children(), board.changed)
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, supervisor.request_stop)
    code = 0
    try:
        # Before the children start: they would take the ports of a killed one for ours, and `svc doctor` is wanted now.
        with published(stack.data_dir, stack.variables):
            with board.live():
                await supervisor.start()
            if not supervisor.stopping.is_set():
                announce(stack, console)
                await asyncio.to_thread(warn_of_damage, stack.environ, console)
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
    """Lock the data directory and run everything on it; returns the exit code. Errors are printed in one line."""
    try:
        with locked(data_dir):
            stack = Stack(data_dir, os.environ, edge_workers)
            stack.check_ports()
            after = None if then is None else lambda stopping: then(stack, stopping)
            return asyncio.run(run_stack(stack, console, after))
    except BadSetting as error:
        print_error(console, f"{error}: {CORRECT_SETTING}")
        return BAD_SETTING
    except (CannotRun, OSError) as error:
        print_error(console, str(error))
        return FAILED


@click.command()
@click.option("--edge-workers", type=click.IntRange(1), help="Processes that share the ingest port.")
@click.pass_obj
def up(workspace: Workspace, edge_workers: int | None) -> None:
    """Run everything on this machine: our processes, and Kafka and ClickHouse unless their addresses are set."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    sys.exit(start(workspace.data_dir, Console(), edge_workers))
