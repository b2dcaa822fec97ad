"""`svc dead-letters`: lists dead-lettered records and replays them after their cause is fixed."""

import asyncio
from typing import Any

import click

from broker.dead_letters import Letter, dead_letters_reader, letters, put_back
from cli.command_groups import NearestGroup
from cli.console import json_option, output, servers_of
from cli.failures import reported
from cli.workspace import Workspace
from schemas.settings import KafkaSettings, MigrateSettings


async def _rows(settings: KafkaSettings, *, everything: bool) -> list[dict[str, Any]]:
    async with dead_letters_reader(settings) as (consumer, tp):
        return [_row(letter) async for letter in letters(consumer, tp, everything=everything)]


def _row(letter: Letter) -> dict[str, Any]:
    dead_letter, _, record = letter
    return {
        "at": dead_letter.at,
        "stage": dead_letter.stage,
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "projectId": dead_letter.project_id or None,
        "reason": dead_letter.reason,
        "bytes": len(record.value or b""),
    }


@click.group(cls=NearestGroup)
def dead_letters() -> None:
    """Records that could not be processed."""


@dead_letters.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that were replayed.")
@json_option
@click.pass_obj
def list_(workspace: Workspace, everything: bool, as_json: bool) -> None:
    """List dead letters, their sources and reasons."""
    settings = servers_of(workspace, MigrateSettings)
    with reported(settings):
        rows = asyncio.run(_rows(settings, everything=everything))
    output(as_json, {"deadLetters": rows}, lambda: print_dead_letters(rows))


def print_dead_letters(rows: list[dict[str, Any]]) -> None:
    """A line for each dead letter."""
    for row in rows:
        source = f"{row['topic']}/{row['partition']}/{row['offset']}"
        click.echo(f"{row['at']}  {row['stage']:<10}  {source}  {row['bytes']} bytes  {row['reason']}")
    if not rows:
        click.echo("no dead letters")


@dead_letters.command()
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number.")
@click.pass_obj
def replay(workspace: Workspace, limit: int | None) -> None:
    """Replay dead letters that were not replayed yet, oldest first."""
    settings = servers_of(workspace, MigrateSettings)
    with reported(settings):
        done = asyncio.run(put_back(settings, limit))
    click.echo(f"{done} replayed")
