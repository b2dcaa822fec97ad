"""`svc send`: posts events from JSONL files."""

import asyncio
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cli.console import json_option, output, settings_of
from cli.send.batch_sender import Sender, SendReport
from cli.send.send_batches import batches, read_lines
from cli.workspace import Workspace
from schemas.settings import LibrarySettings


def bar(console: Console) -> Progress:
    """A progress bar with a text field; hidden without a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def events_of(files: tuple[Path, ...], progress: Progress, report: SendReport) -> Iterator[bytes]:
    """The events of all files in order, with progress; files that can't be read completely are added to the report."""
    task = progress.add_task("sending", total=sum(file.stat().st_size for file in files), said="")

    def advance(read: int) -> None:
        progress.update(task, advance=read, said=f"{report.accepted:,} accepted")

    for file in files:
        try:
            yield from read_lines(file, advance)
        except (OSError, EOFError, zlib.error) as error:
            report.unread.append(f"{file}: {error}")


def counts(report: SendReport) -> dict[str, Any]:
    """The counts, for JSON."""
    return {key: value for key, value in asdict(report).items() if key != "last_posted"}


def sentences(details: list[dict[str, str]]) -> str:
    """A validation error's details as lines `field: message`."""
    return "\n".join(f"{detail.get('field', '')}: {detail.get('message', '')}" for detail in details)


def print_send_report(report: SendReport, console: Console) -> None:
    """Print the counts and the first problems."""
    rate = report.events / report.seconds if report.seconds else 0.0
    console.print(
        f"{report.accepted:,} accepted, {report.rejected:,} rejected, "
        f"{report.refused:,} not delivered of {report.events:,} events "
        f"in {report.seconds:.1f} s ({rate:,.0f}/s, {report.retries} retries)",
        highlight=False,
        soft_wrap=True,
    )
    table = Table("event", "error", "details", box=None)
    for problem in report.problems:
        table.add_row(str(problem["index"]), escape(problem["error"]), escape(sentences(problem["details"])))
    if report.problems:
        console.print(table)
    for unread in report.unread:
        console.print(f"not read completely: {escape(unread)}", highlight=False, soft_wrap=True)


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--token", help="Project token; also SVC_TOKEN.")
@click.option("--url", help="Ingest address; also SVC_INGEST_URL, else that of the running `svc up`.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Events per second; default: as fast as possible.",
)
@click.option(
    "--retry-for",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to retry a batch.",
)
@json_option
@click.pass_obj
def send(
    workspace: Workspace,
    files: tuple[Path, ...],
    token: str | None,
    url: str | None,
    rate: float | None,
    retry_for: float,
    as_json: bool,
) -> None:
    """Post events from JSONL files (.gz too) in gzipped batches; exits 1 unless every event was accepted."""
    console = Console(stderr=True)
    settings = settings_of(workspace, LibrarySettings)
    token, url = token or settings.token, url or settings.ingest_url
    if not token:
        raise click.UsageError(
            "no token: pass --token or set SVC_TOKEN (`svc projects create NAME` prints one)"
        )
    if not url:
        raise click.UsageError(
            "no ingest address: pass --url, set SVC_INGEST_URL, or start `svc up` on this data directory"
        )
    sender = Sender(url, token, rate=rate, retry_for=retry_for)
    with bar(console) as progress:
        report = asyncio.run(sender.send(batches(events_of(files, progress, sender.report))))
    output(as_json, counts(report), lambda: print_send_report(report, Console()))
    sys.exit(0 if report.clean else 1)
