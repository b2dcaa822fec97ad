"""`svc doctor`: checks the settings and each dependency, says what is wrong and how to mend it."""

import sys

import click
from rich.text import Text

from local.checks import Finding, check_disk, check_local_programs, check_settings
from local.clickhouse_check import check_clickhouse
from local.console import console, print_json
from local.kafka_check import check_kafka
from local.workspace import Workspace
from schemas.settings import MigrateSettings, load


def findings(workspace: Workspace) -> list[Finding]:
    """All checks that make sense here: local programs only where a server would have to be started."""
    settled = check_settings(workspace.environ)
    found = [settled, check_disk(workspace.data_dir)]
    if not settled.ok:
        return found
    settings = load(MigrateSettings, workspace.environ)
    if not settings.kafka_bootstrap or not settings.clickhouse_url:
        found += check_local_programs()
    return [*found, *check_kafka(settings), *check_clickhouse(settings.clickhouse_url)]


def line(finding: Finding) -> Text:
    """`ok    kafka  127.0.0.1:9092 answers`, or what is wrong and, below, how to mend it."""
    text = Text("ok     ", "green") if finding.ok else Text("WRONG  ", "bold red")
    text.append(f"{finding.name:<18} ", "default").append(finding.said, "default")
    if not finding.ok:
        text.append(f"\n       {'':<18} {finding.mend}", "yellow")
    return text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list.")
@click.pass_obj
def doctor(workspace: Workspace, as_json: bool) -> None:
    """Check settings and dependencies; exits 1 if anything is wrong."""
    found = findings(workspace)
    if as_json:
        print_json(found)
    else:
        for finding in found:
            console().print(line(finding))
    sys.exit(0 if all(finding.ok for finding in found) else 1)
