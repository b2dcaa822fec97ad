"""What the demo asks the read API: which events of a project are stored, and how often its issues count."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PAGE = 500


@dataclass
class StoredEvents:
    """A project as the read API shows it: how many issues, what they count in all, and each stored event's id."""

    issues: int = 0
    counted: int = 0
    ids: Counter[str] = field(default_factory=Counter)

    @property
    def stored(self) -> int:
        """Rows, repeated ones included."""
        return self.ids.total()

    def differences(self, sent: set[str]) -> list[str]:
        """Sentences about all that isn't as it must be when each of `sent` was stored and counted exactly once."""
        missing, foreign = sent - self.ids.keys(), self.ids.keys() - sent
        twice = [event for event, times in self.ids.items() if times > 1]
        found = {
            f"{len(missing)} events are not stored": missing,
            f"{len(foreign)} stored events were never sent": foreign,
            f"{len(twice)} events are stored twice": twice,
            f"the issues count {self.counted} events instead of {len(sent)}": self.counted != len(sent),
        }
        return [sentence for sentence, wrong in found.items() if wrong]


class ReadApi:
    """The calls of the read API that the demo needs; `session` carries the address and the sign-in."""

    def __init__(self, session: aiohttp.ClientSession, project: str) -> None:
        self._session = session
        self._path = f"/api/v1/projects/{project}"

    async def _pages(self, what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        parameters = {"limit": str(PAGE)}
        while True:
            async with self._session.get(f"{self._path}/{what}", params=parameters) as response:
                response.raise_for_status()
                page = await response.json()
            found += page[what]
            if not page["nextCursor"]:
                return found
            parameters["cursor"] = page["nextCursor"]

    async def knows_project(self) -> bool:
        """True once the dashboard, which follows the projects, knows this one."""
        async with self._session.get(f"{self._path}/issues") as response:
            return response.status == 200

    async def counts(self) -> StoredEvents:
        """Issues and what they count, without the events."""
        issues = await self._pages("issues")
        return StoredEvents(len(issues), sum(issue["totalEvents"] for issue in issues))

    async def all(self) -> StoredEvents:
        """Everything."""
        seen = await self.counts()
        seen.ids.update(event["id"] for event in await self._pages("events"))
        return seen
