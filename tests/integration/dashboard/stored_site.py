"""A dashboard over real tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from control.issue_changes import IssueChanges
from schemas.settings import DashboardSettings
from storage.artifact_store import ArtifactStore
from tests.integration.dashboard.store import AppliedCommands, Store, WatchedReader
from tests.unit.dashboard.site import NOW, SETTINGS, Site, running_site


@dataclass
class StoredSite(Site):
    """A running dashboard with its parts in reach."""

    store: Store
    reader: WatchedReader
    commands: AppliedCommands


@asynccontextmanager
async def stored_site(
    store: Store, number: int, settings: DashboardSettings = SETTINGS
) -> AsyncIterator[StoredSite]:
    """A dashboard with one project over these tables."""
    reader, commands = WatchedReader(store.url, NOW), AppliedCommands(store)
    changes = IssueChanges(reader, commands, lambda: NOW)
    async with running_site(reader, changes, number, settings, artifacts=ArtifactStore([store.url])) as site:
        yield StoredSite(
            site.client, site.projects, site.project, site.log, store, reader, commands, lag=site.lag
        )
