"""`svc rebuild`: recreates a table of the processors, from the logs if they are complete, else from ClickHouse."""

import asyncio

import click

from cli.console import servers_of
from cli.failures import reported
from cli.workspace import Workspace
from rebuild.tables import LOGS, run_rebuild
from schemas.settings import ProcessorsSettings


@click.command()
@click.argument("table", type=click.Choice([*sorted(LOGS), "all"]))
@click.option(
    "--from",
    "source",
    type=click.Choice(["topics", "clickhouse"]),
    help="The source. Default: the topics if none of their records has expired, else ClickHouse.",
)
@click.confirmation_option(prompt="The table is emptied and rebuilt. Go on?")
@click.pass_obj
def rebuild(workspace: Workspace, table: str, source: str | None) -> None:
    """Rebuild a table of the processors: `seen` (ids), `issues` (counts and states), or `all`.

    Stop the processors first; for ClickHouse, let the writer run until it has read everything. From the
    topics, events older than their first record are not counted. `seen` alone is not rebuilt from ClickHouse
    after processors that were killed.
    """
    settings = servers_of(workspace, ProcessorsSettings)
    with reported(settings):
        asyncio.run(run_rebuild(settings, LOGS if table == "all" else [table], source, click.echo))
