"""`svc doctor`: checks the settings and each dependency; reports problems with their fixes."""

import sys
from collections.abc import Sequence

import click
from rich.text import Text

from broker.rights import PROCESSES, Process, needs
from cli.console import console, output
from cli.doctor.basic_checks import Finding, check_disk, check_settings
from cli.doctor.clickhouse_check import check_clickhouse, check_reader
from cli.doctor.damage_check import check_damage
from cli.doctor.kafka_check import check_kafka
from cli.doctor.process_check import check_processes, expected
from cli.doctor.rate_limit_store import check_rate_limit_store
from cli.workspace import Workspace
from local.discovery import running
from schemas.environment import load
from schemas.settings import EdgeSettings, MigrateSettings, NotifySettings
from storage.shards import only, shards_of


def findings(
    workspace: Workspace, processes: Sequence[Process] = PROCESSES, named: Sequence[str] = ()
) -> list[Finding]:
    """Run all checks that apply to these processes; for every process also those on running ones."""
    environ = workspace.environ
    valid = check_settings(environ)
    results = [valid, check_disk(workspace.data_dir)]
    if not valid.ok:
        return results
    settings = load(MigrateSettings, environ)
    stores = {"processors", "writer", "dashboard", "operator"} & set(processes)
    needed = needs(settings, load(NotifySettings, environ).notify_group)
    results += check_kafka(settings, {process: needed[process] for process in processes})
    if stores:
        for shard in shards_of(settings) or only(""):
            results += check_clickhouse(shard.url, processes, str(shard))
    if {"dashboard", "notify"} & set(processes):
        results += check_reader(
            settings.clickhouse_reader_url, settings.clickhouse_url, spread=len(settings.shard_urls) > 1
        )
    if {"writer", "operator"} & set(processes):
        results += check_damage(settings)
    if "edge" in processes:
        results += check_rate_limit_store(load(EdgeSettings, environ))
    if settings.kafka_bootstrap and (named or set(processes) == set(PROCESSES)):
        all_here = bool(running(workspace.data_dir))
        results += check_processes(settings, expected(environ, settings), named, all_here=all_here)
    return results


def line(finding: Finding, width: int) -> Text:
    """`ok    kafka  127.0.0.1:9092 answers`, or the problem; in a second line its fix. `width` is that of names."""
    text = Text("ok     ", "green") if finding.ok else Text("WRONG  ", "bold red")
    text.append(f"{finding.name:<{width}} ", "default").append(finding.message, "default")
    if finding.fix:
        text.append(f"\n       {'':<{width}} {finding.fix}", "yellow")
    return text


def print_findings(results: Sequence[Finding]) -> None:
    """A line for each finding."""
    width = max(len(finding.name) for finding in results)
    for finding in results:
        console().print(line(finding, width))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list.")
@click.option(
    "--for",
    "processes",
    type=click.Choice(PROCESSES),
    multiple=True,
    help="Only the needs of this process, with its credentials; no running process is asked. [default: every process]",
)
@click.option(
    "--ask",
    "named",
    metavar="URL",
    multiple=True,
    help="Also ask the process that listens there, such as http://edge-0:8080.",
)
@click.pass_obj
def doctor(
    workspace: Workspace, as_json: bool, processes: tuple[Process, ...], named: tuple[str, ...]
) -> None:
    """Check settings, dependencies, rights and running processes; exits 1 on any problem. Changes nothing."""
    results = findings(workspace, processes or PROCESSES, named)
    output(as_json, results, lambda: print_findings(results))
    sys.exit(0 if all(finding.ok for finding in results) else 1)
