"""A server that issues tokens for client credentials (RFC 6749, section 4.4).

The tokens have no signature (RFC 7515, appendix A.5).
"""

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from local.ports import free_port


def unsigned(claims: dict[str, Any]) -> str:
    """A token with these claims."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)
    ]
    return b".".join([*parts, b""]).decode()


class TokenServer:
    """Knows each user by the password `USER-secret`; counts the issued tokens."""

    def __init__(self, life_seconds: float = 3600) -> None:
        self.url = f"http://127.0.0.1:{free_port()}/token"
        self.life_seconds = life_seconds
        self.issued = 0
        self.scopes: list[str] = []

    async def _issue(self, request: web.Request) -> web.Response:
        form = await request.post()
        credentials = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        user, _, password = credentials.partition(":")
        if password != f"{user}-secret" or form["grant_type"] != "client_credentials":
            return web.json_response({"error": "invalid_client"}, status=401)
        self.issued += 1
        self.scopes.append(str(form.get("scope", "")))
        now = time.time()
        token = unsigned({"sub": user, "iat": now, "exp": now + self.life_seconds})
        return web.json_response(
            {"access_token": token, "token_type": "Bearer", "expires_in": self.life_seconds}
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TokenServer"]:
        """Listens inside the block."""
        app = web.Application()
        app.router.add_post("/token", self._issue)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", int(self.url.rpartition(":")[2].partition("/")[0])).start()
            yield self
        finally:
            await runner.cleanup()
