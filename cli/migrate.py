"""`svc migrate`: creates the topics and the ClickHouse schema, or prints what others are to create."""

import asyncio
import sys

import click
import yaml

from broker.errors import KafkaError, TopicsRefused
from broker.topics import TopicsReport, as_builtins, ensure_topics, specs_of
from cli.console import clickhouse_failure, console, kafka_failure, need_kafka, settings_of
from cli.workspace import Workspace
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError
from storage.migrations import migrate as schema


@click.command()
@click.option(
    "--print", "only_print", is_flag=True, help="Print topic specifications (YAML) and SQL; change nothing."
)
@click.pass_obj
def migrate(workspace: Workspace, only_print: bool) -> None:
    """Create the topics and the ClickHouse schema; running it again changes nothing."""
    settings = settings_of(workspace, MigrateSettings)
    if only_print:
        click.echo(printed(settings))
        return
    need_kafka(settings.kafka_bootstrap)
    if not settings.clickhouse_url:
        click.echo(
            "svc: no ClickHouse: start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL", err=True
        )
        sys.exit(2)
    try:
        apply(settings)
    except TopicsRefused as error:
        _fail(f"Kafka at {settings.kafka_bootstrap}: {error}")
    except KafkaError as error:
        _fail(kafka_failure(settings, error))
    except ClickHouseError as error:
        _fail(clickhouse_failure(settings.clickhouse_url, error))


def printed(settings: MigrateSettings) -> str:
    """The topics as YAML and the SQL of all migrations as one text; the SQL stands in a YAML block, so the whole parses."""
    topics = yaml.safe_dump({"topics": as_builtins(specs_of(settings))}, sort_keys=False)
    sql = []
    for migration in schema.migrations():
        sql.append(f"-- {migration.number:04} {migration.name}: {migration.why}")
        sql += [statement + ";" for statement in migration.statements()]
    block = "\n".join("  " + line if line else "" for line in "\n".join(sql).splitlines())
    return f"{topics}sql: |\n{block}"


def apply(settings: MigrateSettings) -> None:
    """Create what is missing and say what was done. Raises KafkaError, TopicsRefused, ClickHouseError, BadSetting."""
    out = console()
    report = asyncio.run(ensure_topics(settings))
    for name in report.created:
        out.print(f"created topic {name}")
    for difference in report.differences:
        words = "left as it is, harmless" if difference.harmless else "left as it is"
        out.print(f"{words}: {difference.said}", style="default" if difference.harmless else "yellow")
    for what in report.unknown:
        out.print(f"not compared: {what}", style="yellow")
    done = schema.migrate(settings.clickhouse_url)
    for migration in done:
        out.print(f"applied {migration.number:04} {migration.name}: {migration.why}")
    if not report.created and not done:
        out.print(closing(report))


def closing(report: TopicsReport) -> str:
    """The last line where nothing was created: what it claims has been seen."""
    if report.unknown:
        return "nothing was created: the topics exist and the schema is up to date, but not every topic could be compared"
    if not all(difference.harmless for difference in report.differences):
        return (
            "nothing was created: the schema is up to date, and the topics exist with the differences above"
        )
    return "nothing to do: topics and schema are up to date"


def _fail(reason: str) -> None:
    click.echo(f"svc: {reason}", err=True)
    sys.exit(1)
