"""The model of ClickHouse answers and stores the same as a real server."""

from collections.abc import Iterator

import pytest

from storage.tables.migrations.migrate import migrate
from tests.integration.simulation.store_histories import Histories, Operation, play, rows_of_equal_keys
from tests.integration.simulation.stores import RealStore, on_model
from tests.servers import new_database

pytestmark = pytest.mark.slow

NARROW_WINDOW = 4
"""The window where every block is one part of each table.

Parts of a block reach a table in no fixed order, and are forgotten in no fixed order."""
WIDE_WINDOW = 1_000


@pytest.fixture(scope="module")
def real(clickhouse_url: str) -> Iterator[RealStore]:
    """One database for all histories."""
    with new_database(clickhouse_url) as url:
        migrate(url)
        store = RealStore(url)
        yield store
        store.client.close()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_random_history_of_blocks(real: RealStore, seed: int, wide: bool) -> None:
    compare(real, WIDE_WINDOW if wide else NARROW_WINDOW, seed, Histories(seed, wide=wide).operations)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_history_of_erasures(real: RealStore, seed: int) -> None:
    compare(real, WIDE_WINDOW, seed, Histories(seed, wide=True, erasing=True).operations)


def compare(real: RealStore, window: int, seed: int, operations: list[tuple[str, Operation]]) -> None:
    """Play a history on both, and compare each answer and state."""
    real.empty(window)
    answers = zip(on_model(seed, window, play(operations)), play(operations)(real), strict=True)
    for number, (modelled, answered) in enumerate(answers):
        assert modelled[:2] == answered[:2], f"operation {number} of {[kind for kind, _ in operations]}"
        for table, rows in answered[2].items():
            assert modelled[2][table] == rows, f"{table} after operation {number}: {answered[0]}"


def test_rows_of_equal_keys(real: RealStore) -> None:
    answers = zip(on_model(1, WIDE_WINDOW, rows_of_equal_keys), rows_of_equal_keys(real), strict=True)
    for number, (modelled, answered) in enumerate(answers):
        assert modelled == answered, f"block {number}"
