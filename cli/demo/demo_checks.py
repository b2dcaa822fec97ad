"""The demo's queries to the read API: the stored events of a project and the counts of its issues."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PAGE = 500


@dataclass
class StoredEvents:
    """A project in the read API: the number of issues, the sum of their counts, and the ids of the stored events."""

    issues: int = 0
    counted: int = 0
    ids: Counter[str] = field(default_factory=Counter)

    @property
    def stored(self) -> int:
        """The number of rows, including duplicates."""
        return self.ids.total()

    def differences(self, sent: set[str]) -> list[str]:
        """A sentence for each deviation from storing and counting every event of `sent` exactly once."""
        missing, foreign = sent - self.ids.keys(), self.ids.keys() - sent
        duplicates = [event for event, times in self.ids.items() if times > 1]
        checks = {
            f"{len(missing)} events are not stored": missing,
            f"{len(foreign)} stored events were never sent": foreign,
            f"{len(duplicates)} events are stored twice": duplicates,
            f"the issues count {self.counted} events instead of {len(sent)}": self.counted != len(sent),
        }
        return [sentence for sentence, failed in checks.items() if failed]


class ReadApi:
    """The read API calls of the demo; `session` has the address and the credentials."""

    def __init__(self, session: aiohttp.ClientSession, project: str) -> None:
        self._session = session
        self._path = f"/api/v1/projects/{project}"

    async def _pages(self, kind: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        parameters = {"limit": str(PAGE)}
        while True:
            async with self._session.get(f"{self._path}/{kind}", params=parameters) as response:
                response.raise_for_status()
                page = await response.json()
            rows += page[kind]
            if not page["nextCursor"]:
                return rows
            parameters["cursor"] = page["nextCursor"]

    async def knows_project(self) -> bool:
        """True once the dashboard has read the project from its topic."""
        async with self._session.get(f"{self._path}/issues") as response:
            return response.status == 200

    async def counts(self) -> StoredEvents:
        issues = await self._pages("issues")
        return StoredEvents(len(issues), sum(issue["totalEvents"] for issue in issues))

    async def all(self) -> StoredEvents:
        result = await self.counts()
        result.ids.update(event["id"] for event in await self._pages("events"))
        return result
