"""`svc dictionary`: trains payload dictionaries on this deployment's events."""

import sys
from pathlib import Path

import click

from cli.console import clickhouse_failure, fail, need_clickhouse, print_json, settings_of
from cli.dictionary_training import best, measure, split, train
from cli.groups import NearestGroup
from cli.workspace import Workspace
from local.stack import dictionaries_folder
from schemas.payload import OWN_LEVEL, SHIPPED_LEVEL
from schemas.payload_dictionaries import FIRST_OWN, Dictionaries, add_dictionary
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError, open_client
from storage.reader.payload_samples import PayloadSample, samples
from storage.shards import reader_urls

_MIN_EVENTS = 500
_MAX_SIZE_RATIO = 0.95
_NOT_BETTER = 1


@click.group(cls=NearestGroup)
def dictionary() -> None:
    """Train compression dictionaries on events of this deployment."""


@dictionary.command("train")
@click.option("--days", default=7, show_default=True, help="Maximum age of the events.")
@click.option("--events", default=20_000, show_default=True, help="Maximum number of events.")
@click.option("--force", is_flag=True, help="Keep it even if it saves less than 5 %.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def train_(workspace: Workspace, days: int, events: int, force: bool, as_json: bool) -> None:
    """Train the next dictionary on recent events, and keep it if it makes other events smaller.

    It is written to SVC_PAYLOAD_DICTIONARIES. Copy the two files to every other process first, then to the edges, and
    restart these: an edge compresses with the highest number that it finds at its start.
    """
    settings = settings_of(workspace, MigrateSettings)
    folder = Path(settings.payload_dictionaries or dictionaries_folder(workspace.data_dir))
    need_clickhouse(settings.reader_url)
    sampled = _samples(reader_urls(settings)[0], days, events)
    if len(sampled) < _MIN_EVENTS:
        fail(f"{len(sampled)} events of the last {days} days are too few: at least {_MIN_EVENTS} are needed")
    existing = Dictionaries(folder if folder.is_dir() else None)
    number = 1 + max(FIRST_OWN - 1, existing.newest(), *(sample.dictionary for sample in sampled))
    parts = split((sample.fingerprint, sample.event) for sample in sampled)
    level = OWN_LEVEL if existing.newest() >= FIRST_OWN else SHIPPED_LEVEL
    before = measure(existing.content(existing.newest()), parts, level)
    try:
        after = best(parts, number)
        content = train([sample.event for sample in sampled], number, len(after.content))
    except ValueError as error:
        fail(str(error))
    better = after.mean < _MAX_SIZE_RATIO * before.mean
    file = add_dictionary(folder, number, content) if better or force else None
    result = {
        "number": number,
        "file": str(file) if file else None,
        "bytes": len(content),
        "events": len(sampled),
        "issues": len({sample.fingerprint for sample in sampled}),
        "knownIssues": {"before": round(before.known), "after": round(after.known)},
        "unknownIssues": {"before": round(before.unknown), "after": round(after.unknown)},
    }
    if as_json:
        print_json(result)
    else:
        click.echo(
            f"{len(sampled)} events of {result['issues']} issues; mean bytes of events outside the training set:\n"
            f"  of issues in the training set {before.known:5.0f} before, {after.known:5.0f} with dictionary {number}\n"
            f"  of other issues               {before.unknown:5.0f} before, {after.unknown:5.0f} with dictionary {number}\n"
            + (_next_steps(file) if file else "It saves less than 5 %: not kept (--force keeps it).")
        )
    if not file:
        sys.exit(_NOT_BETTER)


def _samples(url: str, days: int, events: int) -> list[PayloadSample]:
    try:
        client = open_client(url)
        try:
            return samples(client, days=days, most=events)
        finally:
            client.close()
    except ClickHouseError as error:
        fail(clickhouse_failure(url, error))


def _next_steps(file: Path) -> str:
    return (
        f"Written: {file} and its checksum file.\n"
        "Copy both to processors, writers and dashboards first; then to the edges, and restart these\n"
        "(with `svc up`: just restart it)."
    )
