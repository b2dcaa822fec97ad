"""`svc doctor`: checks the settings and each dependency; reports problems with their fixes."""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import click
from rich.text import Text

from broker.rights import PROCESSES, Process, needs
from cli.console import console, print_json
from cli.doctor.basic_checks import Finding, check_disk, check_settings
from cli.doctor.clickhouse_check import check_clickhouse, check_reader
from cli.doctor.damage_check import check_damage
from cli.doctor.kafka_check import check_kafka
from cli.doctor.process_check import AT_ONCE, check_processes, expected
from cli.doctor.rate_limit_store import check_rate_limit_store
from cli.workspace import Workspace
from local.discovery import running
from schemas.environment import load
from schemas.settings import EdgeSettings, MigrateSettings, NotifySettings
from storage.shards import only, shards_of

_NAME_WIDTH: Final = len("clickhouse rights: processors")


def findings(
    workspace: Workspace, processes: Sequence[Process] = PROCESSES, named: Sequence[str] = ()
) -> Iterator[Finding]:
    """Run all checks that apply to these processes; for every process also those on running ones.

    Servers are checked at the same time; what needs them only if they answer. Each finding comes once it and those
    before it are known.
    """
    environ = workspace.environ
    valid = check_settings(environ)
    yield valid
    yield check_disk(workspace.data_dir)
    if not valid.ok:
        return
    settings = load(MigrateSettings, environ)
    needed = needs(settings, load(NotifySettings, environ).notify_group)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        kafka = pool.submit(check_kafka, settings, {process: needed[process] for process in processes})
        servers = [
            pool.submit(check_clickhouse, shard.url, processes, str(shard))
            for shard in shards_of(settings) or only("")
            if {"processors", "writer", "dashboard", "operator"} & set(processes)
        ]
        others = []
        if {"dashboard", "notify"} & set(processes):
            spread = len(settings.shard_urls) > 1
            reader, url = settings.clickhouse_reader_url, settings.clickhouse_url
            others.append(pool.submit(check_reader, reader, url, spread=spread))
        if "edge" in processes:
            others.append(pool.submit(check_rate_limit_store, load(EdgeSettings, environ)))
        for check in (kafka, *servers, *others):
            yield from check.result()
        kafka_answers = any(finding.ok for finding in kafka.result())
        clickhouse_answers = all(server.result()[0].ok for server in servers)
        further = []
        if {"writer", "operator"} & set(processes) and kafka_answers and clickhouse_answers:
            further.append(pool.submit(check_damage, settings))
        if settings.kafka_bootstrap and (named or set(processes) == set(PROCESSES)):
            all_here = bool(running(workspace.data_dir))
            expects = expected(environ, settings)
            options = {"all_here": all_here, "kafka_answers": kafka_answers}
            further.append(pool.submit(check_processes, settings, expects, named, **options))
        for check in further:
            yield from check.result()


def line(finding: Finding) -> Text:
    """`ok    kafka  127.0.0.1:9092 answers`, or the problem; in a second line its fix."""
    text = Text("ok     ", "green") if finding.ok else Text("WRONG  ", "bold red")
    text.append(f"{finding.name:<{_NAME_WIDTH}} ", "default").append(finding.message, "default")
    if finding.fix:
        text.append(f"\n       {'':<{_NAME_WIDTH}} {finding.fix}", "yellow")
    return text


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
    results = []
    for finding in findings(workspace, processes or PROCESSES, named):
        results.append(finding)
        if not as_json:
            console().print(line(finding))
    if as_json:
        print_json(results)
    sys.exit(0 if all(finding.ok for finding in results) else 1)
