"""`svc guest`: prints the requirements for a platform team to approve and create."""

import click

from cli.command_groups import NearestGroup
from cli.console import settings_of
from cli.guest.guest_plan import plan
from cli.guest.plan_formats import FORMATS
from cli.workspace import Workspace
from schemas.settings import EdgeSettings, NotifySettings, ProcessorsSettings, WriterSettings
from storage.client import parse_url


@click.group(cls=NearestGroup)
def guest() -> None:
    """Print the requirements on Kafka, ClickHouse and Kubernetes of other teams."""


@guest.command("plan")
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    default="page",
    show_default=True,
    help="For people, for Kafka's own scripts, SQL for ClickHouse, its servers as a cluster, or values for Helm.",
)
@click.pass_obj
def plan_(workspace: Workspace, format_: str) -> None:
    """Print topics, rights by process, users of ClickHouse, connections and Helm values; connects to nothing.

    Names and addresses are those of the settings: SVC_TOPIC_PREFIX, SVC_TOPIC_PARTITIONS, SVC_WRITER_GROUP and so on.
    """
    processors = settings_of(workspace, ProcessorsSettings)
    database = parse_url(processors.clickhouse_url).database if processors.clickhouse_url else "svc"
    click.echo(
        FORMATS[format_](
            plan(
                settings_of(workspace, EdgeSettings),
                processors,
                settings_of(workspace, WriterSettings),
                settings_of(workspace, NotifySettings),
                database,
            )
        ),
        nl=False,
    )
