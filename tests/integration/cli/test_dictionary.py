"""A dictionary of a deployment's own events: trained on stored events, and awaited by a writer that lacks it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.__main__ import svc
from cli.dictionary_training import train as trained
from schemas import payload
from schemas.chunks import Grouping
from schemas.payload_dictionaries import add_dictionary
from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.migrations.migrate import migrate
from storage.reader.payload_samples import samples
from storage.writer.event_rows import EventColumns
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, chunk_event, ended, event_json, exactly, whole

ISSUES = 100


@pytest.fixture(autouse=True)
def only_the_shipped() -> Iterator[None]:
    yield
    payload.use_dictionaries("")


def store(client: Client, count: int) -> None:
    """Events with texts that no shipped dictionary knows, in two projects; the first issue has half of them."""
    columns = EventColumns()
    for number in range(count):
        issue = 0 if number % 2 else 1 + number // 2 % (ISSUES - 1)
        frames = [
            {
                "file": f"quelle/ordner{issue}/datei{n}.kt",
                "function": f"verarbeiteAnfrage{issue}_{n}",
                "line": n + 1,
                "inApp": True,
            }
            for n in range(30)
        ]
        error = {"type": f"Fehler{issue}", "message": f"Vorgang {number}", "stack": frames}
        event = chunk_event(number, error=error)
        columns.add(event, Grouping(issue, "v1", "frames", ()), 30, 30)
    client.insert_arrow(
        "ingest", columns.table(), settings={**INSERT_SETTINGS, "insert_deduplication_token": "t"}
    )


def train(url: str, folder: Path, *options: str) -> tuple[int, str]:
    """`svc dictionary train` in this process: its exit status and output."""
    environ = {"SVC_CLICKHOUSE_URL": url, "SVC_PAYLOAD_DICTIONARIES": str(folder)}
    os.environ.update(environ)
    try:
        done = CliRunner().invoke(svc, ["--data-dir", str(folder), "dictionary", "train", "--json", *options])
    finally:
        for name in environ:
            del os.environ[name]
    return done.exit_code, done.output


def test_dictionaries_are_trained_on_stored_events_and_numbered_on(
    clickhouse_database_url: str, tmp_path: Path
) -> None:
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        status, output = train(clickhouse_database_url, tmp_path)
        assert (status, "too few" in output) == (1, True)
        store(client, 3000)
        found = samples(client, days=7, most=20_000)
        assert len({sample.fingerprint for sample in found}) == ISSUES
        assert len(found) < 3000
        status, output = train(clickhouse_database_url, tmp_path)
        result = json.loads(output)
        assert (status, result["number"], result["issues"]) == (0, 1000, ISSUES)
        assert result["knownIssues"]["after"] < result["knownIssues"]["before"]
        # The same events again: nothing is won, nothing is written.
        payload.use_dictionaries(str(tmp_path))
        status, output = train(clickhouse_database_url, tmp_path)
        assert (status, json.loads(output)["file"]) == (1, None)
        assert train(clickhouse_database_url, tmp_path, "--force")[0] == 0
        assert sorted(file.name for file in tmp_path.glob("*.zstd-dictionary")) == [
            "1000.zstd-dictionary",
            "1001.zstd-dictionary",
        ]
    finally:
        client.close()


async def test_a_writer_waits_for_a_dictionary_and_quarantines_no_event(stage: Stage, tmp_path: Path) -> None:

    folder = tmp_path / "dictionaries"
    folder.mkdir()
    elsewhere = tmp_path / "edge"
    content = trained([event_json(number, 1_790_000_000_000) for number in range(2000)], 1000, 4096)
    add_dictionary(elsewhere, 1000, content)
    payload.use_dictionaries(str(elsewhere))
    await stage.produce(6)
    writer = stage.writer(SVC_PAYLOAD_DICTIONARIES=str(folder))
    with ended(writer):
        await eventually(
            lambda: "dictionary 1000 is missing" in str(writer.health("grouped").get("detail")), 60
        )
        assert writer.process.poll() is None
        add_dictionary(folder, 1000, content)
        assert await whole(stage) == exactly(stage.total)
    assert await stage.dead_letters() == []
    client = stage.client()
    try:
        assert scalar(client, "SELECT uniqExact(substring(payload, 6, 2)) FROM payloads") == 1
    finally:
        client.close()


def test_the_events_of_both_dictionaries_are_read(clickhouse_database_url: str, tmp_path: Path) -> None:
    """Edges are restarted one after the other: for a while both kinds of frames arrive."""

    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        old = chunk_event(1)
        add_dictionary(tmp_path, 1000, trained([event_json(number, 0) for number in range(2000)], 1000, 4096))
        payload.use_dictionaries(str(tmp_path))
        new = chunk_event(2)
        columns = EventColumns()
        for event in (old, new):
            columns.add(event, Grouping(1, "v1", "frames", ()), 30, 30)
        client.insert_arrow("ingest", columns.table(), settings=dict(INSERT_SETTINGS))
        frames = [
            row[0]
            for row in client.query(
                "SELECT payload FROM payloads", column_formats={"payload": "bytes"}
            ).result_rows
        ]
        assert {payload.number_of(frame) for frame in frames} == {1, 1000}
        assert {payload.decompress(frame) for frame in frames} == {
            payload.decompress(event.payload) for event in (old, new)
        }
    finally:
        client.close()
