"""A dashboard over a real database, which the tests of a process share."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from control import issue_changes
from dashboard.kept_reads import KeptReads
from sourcemaps import resolver
from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from tests.integration.conftest import MakeTables
from tests.integration.dashboard.api import Api
from tests.integration.dashboard.history import NOW_MS, History, fill
from tests.integration.dashboard.store import Store
from tests.integration.dashboard.stored_site import StoredSite, stored_site
from tests.servers import new_database
from tests.unit.dashboard import sample
from tests.unit.dashboard.site import NOW, running_site


@pytest.fixture(autouse=True)
def _patient_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stalls for a second is no silent ClickHouse."""
    monkeypatch.setattr(issue_changes, "LOOK_SECONDS", 60.0)
    monkeypatch.setattr(KeptReads, "wait_seconds", 60.0)
    monkeypatch.setattr(resolver, "PAGE_SECONDS", 60.0)


@pytest.fixture(scope="session")
def store(clickhouse_url: str, make_tables: MakeTables) -> Iterator[Store]:
    with new_database(clickhouse_url) as url:
        make_tables(url)
        made = Store(url)
        yield made
        made.close()


@pytest.fixture(scope="module")
def history() -> History:
    return History(secrets.randbelow(1 << 30) + 1)


@pytest.fixture(scope="module")
def filled_url(clickhouse_url: str, make_tables: MakeTables, history: History) -> Iterator[str]:
    with new_database(clickhouse_url) as url:
        make_tables(url)
        made = Store(url)
        fill(history, made)
        made.close()
        yield url


@pytest.fixture
async def api(filled_url: str, history: History) -> AsyncIterator[Api]:
    reader = Reader(Executor([filled_url], Limits()), lambda: NOW_MS)
    async with running_site(reader, number=history.project, now_ms=NOW_MS) as site:
        yield Api(site.client, history)


@pytest.fixture
def sample_stored(store: Store) -> int:
    """The project of the sample, which is stored."""
    store.fill(NOW)
    return sample.PROJECT


@pytest.fixture
async def site(store: Store, request: pytest.FixtureRequest) -> AsyncIterator[StoredSite]:
    """A dashboard of an empty project; of the sample's where a test uses `sample_stored`."""
    number = sample.PROJECT if "sample_stored" in request.fixturenames else secrets.randbelow(1 << 30) + 1_000
    async with stored_site(store, number) as running:
        yield running
