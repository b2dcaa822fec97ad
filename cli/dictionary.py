"""`svc dictionary`: payload dictionaries of this deployment's own events."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from cli.console import clickhouse_failure, print_json, settings_of
from cli.dictionary_training import best, measure, split, train
from cli.workspace import Workspace
from local.stack import dictionaries_folder
from schemas.payload import OWN_LEVEL, SHIPPED_LEVEL
from schemas.payload_dictionaries import FIRST_OWN, Dictionaries, add_dictionary
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError, open_client
from storage.reader.payload_samples import PayloadSample, samples

_LEAST_EVENTS = 500
_WORTH_IT = 0.95
_NOT_BETTER = 1


@click.group()
def dictionary() -> None:
    """Train what events are compressed with on events of this deployment."""


@dictionary.command("train")
@click.option("--days", default=7, show_default=True, help="Age of the events that are looked at.")
@click.option("--events", default=20_000, show_default=True, help="Most events that are looked at.")
@click.option("--force", is_flag=True, help="Keep it even where it saves less than 5 %.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def train_(workspace: Workspace, days: int, events: int, force: bool, as_json: bool) -> None:
    """Train the next dictionary on recent events, and keep it where it makes others smaller.

    It is written to SVC_PAYLOAD_DICTIONARIES. Give the two files to every other process first, then to the edges, and restart
    these: an edge compresses with the highest number that it finds when it starts.
    """
    settings = settings_of(workspace, MigrateSettings)
    folder = Path(settings.payload_dictionaries or dictionaries_folder(workspace.data_dir))
    found = _samples(settings.clickhouse_reader_url or settings.clickhouse_url, days, events)
    if len(found) < _LEAST_EVENTS:
        _end(f"{len(found)} events of the last {days} days are too few: at least {_LEAST_EVENTS} are needed")
    there = Dictionaries(folder if folder.is_dir() else None)
    number = 1 + max(FIRST_OWN - 1, there.newest(), *(sample.dictionary for sample in found))
    parts = split((sample.fingerprint, sample.event) for sample in found)
    level = OWN_LEVEL if there.newest() >= FIRST_OWN else SHIPPED_LEVEL
    before = measure(there.content(there.newest()), parts, level)
    try:
        after = best(parts, number)
        content = train([sample.event for sample in found], number, len(after.content))
    except ValueError as error:
        _end(str(error))
    good = after.mean < _WORTH_IT * before.mean
    file = add_dictionary(folder, number, content) if good or force else None
    result = {
        "number": number,
        "file": str(file) if file else None,
        "bytes": len(content),
        "events": len(found),
        "issues": len({sample.fingerprint for sample in found}),
        "knownIssues": {"before": round(before.known), "after": round(after.known)},
        "unknownIssues": {"before": round(before.unknown), "after": round(after.unknown)},
    }
    if as_json:
        print_json(result)
    else:
        click.echo(
            f"{len(found)} events of {result['issues']} issues; bytes of an event that the training did not see:\n"
            f"  of issues that it saw         {before.known:5.0f} before, {after.known:5.0f} with dictionary {number}\n"
            f"  of issues that it did not see {before.unknown:5.0f} before, {after.unknown:5.0f} with dictionary {number}\n"
            + (_next_steps(file) if file else "It saves less than 5 %: not kept (--force keeps it).")
        )
    if not file:
        sys.exit(_NOT_BETTER)


def _samples(url: str, days: int, events: int) -> list[PayloadSample]:
    if not url:
        _end("no ClickHouse: start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL", 2)
    try:
        client = open_client(url)
        try:
            return samples(client, days=days, most=events)
        finally:
            client.close()
    except ClickHouseError as error:
        _end(clickhouse_failure(url, error))


def _next_steps(file: Path) -> str:
    return (
        f"Written: {file}, and its sum beside it.\n"
        "First give both to processors, writers and dashboards; then to the edges, and restart these\n"
        "(with `svc up` alone: restart it)."
    )


def _end(sentence: str, status: int = 1) -> NoReturn:
    click.echo(f"svc: {sentence}", err=True)
    sys.exit(status)
