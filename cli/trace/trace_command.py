"""`svc trace EVENT`: the path of one event, from its receipt to its rows."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import click
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from broker.client import committed_offsets, name_of, open_admin
from broker.types import Record, TopicPartition
from cli.console import console, json_option, output, servers_of
from cli.failures import fail, reported
from cli.projects import project_number
from cli.topics import records_since, start_ms
from cli.trace.trace_steps import Copy, Step, copies, decision, letter
from cli.workspace import Workspace
from schemas.ids import event_partition, hex64, issue_id
from schemas.settings import ProcessorsSettings
from schemas.times import HOUR_MS, MINUTE_MS, iso
from schemas.topics import Topic
from storage.client import open_client

_STORED: Final = """
    SELECT project_id, received, fingerprint, count() AS rows
    FROM events WHERE id = {id:UInt128} AND ({project:UInt32} = 0 OR project_id = {project:UInt32})
    GROUP BY project_id, received, fingerprint"""
_BEFORE_MS: Final = 5 * MINUTE_MS
"""Clocks of edges and brokers differ."""
_SPAN_MS: Final = HOUR_MS
"""How long after its receipt an event is looked for in the topics: copies by repeated requests come soon."""


@click.command()
@click.argument("event", metavar="EVENT")
@click.option("--project", "named", help="Its project's id or name; needed where it is not stored.")
@click.option(
    "--from",
    "since",
    metavar="TIME",
    help="Look in the topics from then on, for an hour: ISO 8601, or an age such as 15m, 2h. "
    "Default: shortly before its receipt, or the last hour.",
)
@json_option
@click.pass_obj
def trace(workspace: Workspace, event: str, named: str | None, since: str | None, as_json: bool) -> None:
    """Show the path of one event: its records in the topics, the decisions on it, and its rows.

    EVENT is the event's id. Nothing is changed. Exit status 1 where nothing is found.
    """
    try:
        event_id = UUID(event).bytes
    except ValueError:
        raise click.BadParameter("must be a UUID", param_hint="EVENT") from None
    settings = servers_of(workspace, ProcessorsSettings, clickhouse=True)
    now = datetime.now(UTC)
    try:
        begin = None if since is None else start_ms(since, now)
    except ValueError:
        raise click.BadParameter(
            "must be an ISO 8601 time with an offset, or an age such as 15m, 2h", param_hint="--from"
        ) from None
    with reported(settings):
        project = asyncio.run(project_number(settings, named)) if named else 0
        stored = [row for url in settings.shard_urls for row in _stored(url, event_id, project)]
    if not project and not stored:
        fail("it is not stored: name its project with --project to look for it in the topics")
    number = project or int(stored[0]["project_id"])
    received = [int(row["received"].timestamp() * 1000) for row in stored]
    if begin is None:
        begin = min(received) - _BEFORE_MS if received else int(now.timestamp() * 1000) - _SPAN_MS
    with reported(settings):
        steps = asyncio.run(_steps(settings, number, event_id, begin))
    steps.sort(key=lambda step: step.at_ms or 0)
    steps += [_row(row, number) for row in stored]
    shown = [{"at": _time(step), "stage": step.stage, "what": step.what} for step in steps]
    output(as_json, {"projectId": str(number), "steps": shown}, lambda: _print(steps))
    if not steps:
        fail(f"not found: it is not stored, and not in the topics of the hour from {iso(begin)}")


def _stored(url: str, event_id: bytes, project: int) -> list[dict[str, Any]]:
    client = open_client(url)
    try:
        found = client.query(_STORED, {"id": int.from_bytes(event_id, "big"), "project": project})
        return list(found.named_results())
    finally:
        client.close()


def _row(row: dict[str, Any], project: int) -> Step:
    fingerprint = int(row["fingerprint"])
    rows = "" if row["rows"] == 1 else f", {row['rows']} rows: run `svc reconcile`"
    issue = hex64(issue_id(project, fingerprint))
    return Step(None, "ClickHouse", f"stored, issue {issue}{rows}")


async def _steps(settings: ProcessorsSettings, project: int, event_id: bytes, begin: int) -> list[Step]:
    found: list[Copy] = []
    async for record in _records(settings, Topic.EVENTS, project, event_id, begin):
        found.extend(copies(record, project, event_id))
    steps = [step for copy in found for step in copy.steps()]
    undecided = {(copy.partition, copy.offset, copy.position): copy for copy in found}
    if found:
        async for record in _records(settings, Topic.GROUPED, project, event_id, begin):
            for key, copy in list(undecided.items()):
                if (decided := decision(record, copy)) is not None:
                    steps.append(decided)
                    del undecided[key]
        steps += await _unread(settings, list(undecided.values()))
    async for record in _records(settings, Topic.DEAD_LETTERS, project, event_id, begin):
        if (dead := letter(record, event_id, found)) is not None:
            steps.append(dead)
    return steps


async def _unread(settings: ProcessorsSettings, undecided: list[Copy]) -> list[Step]:
    """Steps for copies that no record of `grouped` mentions.

    Such a copy is not read yet, or is a repeated id in a record without a new event.
    """
    topic = name_of(settings, Topic.EVENTS)
    partitions = {TopicPartition(topic, copy.partition) for copy in undecided}
    if not partitions:
        return []
    async with open_admin(settings) as admin:
        committed = await committed_offsets(admin, settings.processors_app, partitions)
    steps = []
    for copy in undecided:
        # -1 where nothing was committed.
        behind = copy.offset - max(0, committed[TopicPartition(topic, copy.partition)].offset)
        what = (
            "no new event was in its record: a repeated id, dropped"
            if behind < 0
            else f"not read by the processors yet, {behind} records before it"
        )
        steps.append(Step(copy.at_ms, "grouped", what))
    return steps


async def _records(
    settings: ProcessorsSettings, topic: Topic, project: int, event_id: bytes, begin: int
) -> AsyncIterator[Record]:
    """The records of an hour in which the event may be."""

    def wanted(partitions: int) -> list[int]:
        return [event_partition(project, event_id, partitions) if topic.spread else 0]

    async for record in records_since(settings, topic, begin, wanted):
        if record.timestamp > begin + _BEFORE_MS + _SPAN_MS:
            return
        yield record


def _print(steps: list[Step]) -> None:
    if not steps:
        return
    table = Table(box=SIMPLE)
    for head in ("time", "in", "what"):
        table.add_column(head, overflow="fold")
    for step in steps:
        table.add_row(_time(step), step.stage, escape(step.what))
    console().print(table)


def _time(step: Step) -> str:
    return "" if step.at_ms is None else iso(step.at_ms)
