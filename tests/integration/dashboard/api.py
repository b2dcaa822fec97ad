"""The same API over the fake and over ClickHouse, asked alike."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestClient

from schemas.ids import hex64
from tests.contract.dashboard.worlds import History
from tests.unit.dashboard.site import ADMIN

Client = TestClient[web.Request, web.Application]


class Both(NamedTuple):
    """The same API over the fake and over ClickHouse."""

    fake: Client
    real: Client
    history: History

    async def ask(self, path: str, **query: Any) -> Any:
        """The answer of both, which must be equal."""
        answers = [await self.one(client, path, query) for client in (self.fake, self.real)]
        assert answers[0] == answers[1]
        return answers[1][1]

    async def one(self, client: Client, path: str, query: dict[str, Any]) -> tuple[int, Any]:
        text = f"/api/v1{path}?{urlencode(query)}"
        async with client.get(text, headers=ADMIN) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, body: object) -> Any:
        """The answer of both to a body, which must be equal."""
        answers = []
        for client in (self.fake, self.real):
            async with client.post(f"/api/v1{path}", json=body, headers=ADMIN) as answer:
                answers.append((answer.status, await answer.json()))
        assert answers[0] == answers[1]
        return answers[1][1]

    @property
    def project(self) -> str:
        return f"/projects/{self.history.project}"

    def issue(self, fingerprint: int) -> str:
        return f"/issues/{hex64(self.history.issue(fingerprint))}"
