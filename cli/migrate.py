"""`svc migrate`: creates or prints the topics and the ClickHouse schema."""

import asyncio
from textwrap import indent

import click
import yaml
from msgspec import to_builtins

from broker.topics import TopicsReport, ensure_topics, specs_of
from cli.console import console, servers_of, settings_of
from cli.failures import clickhouse_failure, reported
from cli.workspace import Workspace
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError, parse_url
from storage.server_identity import IDENTITY, REPLICA_IDENTITY
from storage.shards import ONLY, shards_of, whole_url
from storage.tables.migrations import migrate as schema
from storage.tables.migrations.replicated import on_cluster, replicated
from storage.tables.migrations.whole import create_distributed, whole_statements


@click.command()
@click.option(
    "--print", "only_print", is_flag=True, help="Print topic specifications (YAML) and SQL; change nothing."
)
@click.option(
    "--moved",
    is_flag=True,
    help="The data was moved or restored to this ClickHouse server, "
    "or another replica takes the place of the first, which is stopped.",
)
@click.option(
    "--on-cluster", default="", help="With --print: statements for all servers of this cluster (ON CLUSTER)."
)
@click.pass_obj
def migrate(workspace: Workspace, only_print: bool, moved: bool, on_cluster: str) -> None:
    """Create the topics and the ClickHouse schema; idempotent."""
    if only_print:
        click.echo(printed(settings_of(workspace, MigrateSettings), on_cluster))
        return
    settings = servers_of(workspace, MigrateSettings, clickhouse=True)
    if any(len(urls) > 1 for urls in settings.replica_urls):
        click.echo("svc: replicas are experimental: docs/operate/shards.md", err=True)
    with reported(settings):
        create_missing(settings, moved=moved)


def printed(settings: MigrateSettings, cluster: str = "") -> str:
    """One YAML document: the topics, and the SQL of all migrations in a block; of several servers one for each.

    With the name of a cluster, each statement is for all of its servers.
    """
    topics = yaml.safe_dump(
        {"topics": to_builtins(specs_of(settings, grouped_events=settings.grouped_events))}, sort_keys=False
    )
    shards = shards_of(settings)
    has_replicas = any(len(urls) > 1 for urls in settings.replica_urls)
    if len(shards) < 2:
        return f"{topics}sql: |\n{indent(_sql(ONLY, cluster, has_replicas), '  ')}"
    database = parse_url(settings.clickhouse_url).database
    # For `clickhouse-client`: a session that has begun in the server's own database.
    whole = [
        f"{on_cluster(statement, cluster)};"
        for statement in whole_statements(database, settings.clickhouse_cluster)
    ]
    blocks = [
        f"  {shard}: |\n" + indent("\n".join([_sql(str(shard), cluster, has_replicas), *whole]), "    ")
        for shard in shards
    ]
    return f"{topics}sql:\n" + "\n".join(blocks)


def _sql(shard: str, cluster: str, has_replicas: bool) -> str:
    def made(statement: str) -> str:
        text = replicated(statement) if has_replicas else statement
        return f"{on_cluster(text, cluster)};"

    sql = [made(schema.TABLE.strip())]
    if has_replicas and not cluster:
        sql.insert(
            0, "-- Run each statement on every replica before the next; rows are inserted on the first."
        )
    for migration in schema.migrations():
        sql.append(f"-- {migration.number:04} {migration.name}: {migration.why}")
        sql += [*map(made, schema.statements(migration.sql)), f"{migration.record};"]
    last = schema.migrations()[-1]
    # From then on the writer refuses another server.
    identity = (REPLICA_IDENTITY if has_replicas else IDENTITY).strip()
    sql.append(
        "INSERT INTO migrations (number, name, server, shard) "
        f"SELECT {last.number}, '{last.name}', ({identity}), '{shard}';"
    )
    return "\n".join(sql)


def create_missing(settings: MigrateSettings, *, moved: bool = False) -> None:
    """Create the missing topics and tables, and print them.

    Raises KafkaError, TopicsRefused, ClickHouseError, BadSetting.
    """
    out = console()
    report = asyncio.run(ensure_topics(settings, grouped_events=settings.grouped_events))
    for name in report.created:
        out.print(f"created topic {name}")
    for difference in report.differences:
        label = "left as it is, harmless" if difference.harmless else "left as it is"
        out.print(f"{label}: {difference.message}", style="default" if difference.harmless else "yellow")
    for topic in report.unknown:
        out.print(f"not compared: {topic}", style="yellow")
    shards, done = shards_of(settings), list[schema.Migration]()
    for shard, (url, *others) in zip(shards, settings.replica_urls, strict=True):
        done = schema.migrate(url, shard=str(shard), moved=moved, others=others)
        where = f"shard {shard}: " if len(shards) > 1 else ""
        for migration in done:
            out.print(f"{where}applied {migration.number:04} {migration.name}: {migration.why}")
    for (first, *others), shard in zip(settings.replica_urls, shards, strict=True):
        for url in (first, *others):
            try:
                if url != first:
                    schema.copy_schema(first, url)
                if len(shards) > 1:
                    create_distributed(url, whole_url(settings, url), settings.clickhouse_cluster)
            except ClickHouseError as error:
                if url == first:
                    raise
                # One that is down gets its tables by the next `svc migrate`.
                out.print(f"replica of shard {shard}: {clickhouse_failure(url, error)}", style="yellow")
    if not report.created and not done:
        out.print(closing(report))


def closing(report: TopicsReport) -> str:
    """The last line if nothing was created; it claims only verified facts."""
    if report.unknown:
        return (
            "nothing was created: the topics exist and the schema is up to date, "
            "but not every topic could be compared"
        )
    if not all(difference.harmless for difference in report.differences):
        return (
            "nothing was created: the schema is up to date, and the topics exist with the differences above"
        )
    return "nothing to do: topics and schema are up to date"
