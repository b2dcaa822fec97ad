"""A webhook's receiver that fails, answers late or not at all, and drops repeats by their id."""

import asyncio
import hashlib
import hmac
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

SECRET = "a secret"


class Receiver:
    """Has each message once, by `Idempotency-Key`; `bad` is the share of requests that it treats badly."""

    def __init__(self, bad: float = 0.0) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.requests: Counter[str] = Counter()
        self.bad = bad
        self.url = ""
        self._luck = random.Random(1)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Receiver"]:
        app = web.Application()
        app.router.add_post("/hook", self._take)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
            yield self
        finally:
            await runner.cleanup()

    @property
    def causes(self) -> Counter[str]:
        """How often each cause is in a message."""
        return Counter(cause["id"] for message in self.messages.values() for cause in message["causes"])

    async def _take(self, request: web.Request) -> web.StreamResponse:
        body, key = await request.read(), request.headers["Idempotency-Key"]
        signature = dict(part.split("=") for part in request.headers["Svc-Signature"].split(","))
        expected = hmac.new(SECRET.encode(), f"{signature['t']}.".encode() + body, hashlib.sha256).hexdigest()
        assert signature["v1"] == expected
        self.requests[key] += 1
        fate = self._luck.random() / self.bad if self.bad else 9.0
        if fate < 0.4:
            return web.Response(status=503)
        if fate < 0.7:
            # Taken, but the sender doesn't learn of it.
            await self._keep(key, request)
            await asyncio.sleep(30)
        await self._keep(key, request)
        if fate < 1.0:
            return web.Response(status=500)
        return web.Response()

    async def _keep(self, key: str, request: web.Request) -> None:
        self.messages.setdefault(key, await request.json())
