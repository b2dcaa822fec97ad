"""People who read while the attack goes on: the honest project's events and lists, and the hostile issues."""

import asyncio
import time
from math import inf
from typing import Final

import aiohttp

from bench.chaos import proof

PAUSE_SECONDS: Final = 0.5
TIMEOUT: Final = aiohttp.ClientTimeout(total=60)


async def behind(store: proof.Store, project: int, count: int, most: float) -> float:
    """Seconds until `count` events of a project can be queried; `most` and more where they can't by then."""
    begun = time.monotonic()
    query = f"SELECT count() FROM events WHERE project_id = {project}"
    while await asyncio.to_thread(store.number, query) < count:
        if time.monotonic() - begun > most:
            break
        await asyncio.sleep(0.05)
    return time.monotonic() - begun


class Readers:
    """Opens lists, and issues with those that are similar, one after the other, until it is stopped."""

    def __init__(self, base: str, password: str, projects: tuple[int, int]) -> None:
        self._base = base
        self._headers = {"Authorization": aiohttp.encode_basic_auth("admin", password)}
        self._projects = projects
        self.delays: list[float] = []

    async def read_repeatedly(self) -> None:
        """Read until cancelled."""
        async with aiohttp.ClientSession(headers=self._headers, timeout=TIMEOUT) as session:
            while True:
                for project in self._projects:
                    page = await self._get(session, f"/api/v1/projects/{project}/issues?limit=3")
                    for issue in page.get("issues", ()):
                        await self._get(session, f"/api/v1/issues/{issue['id']}")
                        await self._get(session, f"/api/v1/issues/{issue['id']}/similar")
                await asyncio.sleep(PAUSE_SECONDS)

    def taken(self) -> tuple[float, ...]:
        """The delays since the last call."""
        delays, self.delays = self.delays, []
        return tuple(delays)

    async def _get(self, session: aiohttp.ClientSession, path: str) -> dict[str, list[dict[str, str]]]:
        begun = time.monotonic()
        try:
            async with session.get(self._base + path) as answer:
                document: dict[str, list[dict[str, str]]] = await answer.json()
                # An issue of the list may have no events in its range.
                known = answer.status in {200, 404}
        except (aiohttp.ClientError, TimeoutError):
            document, known = {}, False
        self.delays.append(time.monotonic() - begun if known else inf)
        return document if known else {}
