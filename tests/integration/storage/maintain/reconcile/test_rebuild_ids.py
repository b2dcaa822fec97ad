"""The ids from which the dedup log is rebuilt."""

import time

from schemas.ids import uuid7
from storage.client import Client
from storage.maintain import rebuild_queries

DAY = 86_400_000
# Erased ids expire by the server's clock.
NOW = time.time_ns() // 1_000_000


def test_an_id_that_was_made_later_than_it_was_received_is_found_by_its_own_time(client: Client) -> None:
    old, ahead, recent = uuid7(NOW - 40 * DAY), uuid7(NOW + 20 * DAY), uuid7(NOW - 30 * DAY)
    for number, received in ((old, NOW - 40 * DAY), (ahead, NOW - 30 * DAY), (recent, NOW - DAY)):
        at = f"fromUnixTimestamp64Milli({received})"
        client.command(
            "INSERT INTO events (project_id, fingerprint, ts, id, received, retention_days)"
            f" VALUES (7, 5, {at}, toUInt128('{number.int}'), {at}, 90)"
        )
        client.command(
            f"INSERT INTO erased_events VALUES (8, toUInt128('{number.int}'), toDate({at}))",
        )
    found = {(project, number) for project, number, _ in rebuild_queries.ids(client, NOW - 7 * DAY)}
    assert found == {(project, number.bytes) for project in (7, 8) for number in (ahead, recent)}
