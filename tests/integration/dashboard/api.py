"""The read API over a stored history, and the expected answers by the history itself."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestClient

from schemas.ids import hex64
from tests.integration.dashboard.history import History
from tests.unit.dashboard.site import ADMIN

Client = TestClient[web.Request, web.Application]


class Api(NamedTuple):
    """The read API, and the history that is stored under it."""

    client: Client
    history: History

    async def ask(self, path: str, **query: Any) -> Any:
        """The answer's body."""
        async with self.client.get(f"/api/v1{path}?{urlencode(query)}", headers=ADMIN) as answer:
            return await answer.json()

    async def post(self, path: str, body: object) -> Any:
        """The answer's body."""
        async with self.client.post(f"/api/v1{path}", json=body, headers=ADMIN) as answer:
            return await answer.json()

    @property
    def project(self) -> str:
        return f"/projects/{self.history.project}"

    def issue(self, fingerprint: int) -> str:
        return f"/issues/{hex64(self.history.issue(fingerprint))}"
