"""Issues are rebuilt from the same counts, however many projects a statement covers."""

import pytest
from msgspec.structs import replace

from schemas.chunks import ChunkEvent, Grouping
from storage.client import Client
from storage.maintain import rebuild_queries
from storage.maintain.rebuild_queries import StoredCounts, counted
from storage.tables.event_columns import EventColumns
from tests.integration.storage.grouped import chunk_event, insert


def test_projects_that_are_counted_together_have_the_counts_that_each_has_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = EventColumns()
    for number in range(60):
        event = chunk_event(number, spread_days=10)
        of_project = ChunkEvent(7 + number % 5, event.id, event.received_ms, event.sdk, event.payload)
        columns.add_row(of_project, Grouping(number % 3, "v1", "frames", ()), 90, 30)
    insert(client, columns.table(), "t")

    def found() -> list[StoredCounts]:
        counts = [replace(one, users=sorted(one.users)) for one in counted(client)]
        return sorted(counts, key=lambda one: (one.project, one.fingerprint))

    alone = found()
    assert len(alone) == 15
    monkeypatch.setattr(rebuild_queries, "_STATEMENTS", 2)
    # Of five projects three are together, then two; then no two fit, as each has twelve events.
    assert found() == alone
    monkeypatch.setattr(rebuild_queries, "EVENTS_AT_ONCE", 20)
    assert found() == alone
