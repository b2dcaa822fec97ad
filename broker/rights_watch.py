"""Watches the rights of a running process: readiness, a metric and the log name each lost one.

Clients hide refusals: they retry, call a forbidden topic missing, or notice nothing before the next start. So
the watch asks the servers which rights they grant.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from broker.client import administering
from broker.cluster import describe
from broker.errors import KafkaError
from broker.rights import RequiredRights, lacking, names_of, standstill
from broker.types import Admin
from schemas.health import Health, Part
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

Ask = Callable[[], Awaitable[Sequence[str]]]
"""The rights that a server refuses at the moment; any exception means that it doesn't tell."""
CHECK_SECONDS: Final = 4.0
_ANSWER_SECONDS: Final = 5.0
_REMIND_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 1.0


class RightsWatch:
    """Asks each server; reports the part `rights`, and `svc_missing_rights` by right.

    A server that doesn't answer delays no other. The part is not ok while one of the rights in `stops` is
    missing: without it the process stands still. Other parts tell whether the process works without the
    remaining ones. The log names the missing rights at most once a minute.

    """

    def __init__(
        self,
        ask: Sequence[Ask],
        health: Health,
        registry: CollectorRegistry,
        stops: Collection[str] = (),
        check_seconds: float = CHECK_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._missing: dict[Ask, Sequence[str]] = dict.fromkeys(ask, ())
        self._stops = stops
        self._check_seconds = check_seconds
        self._now = now
        self._since: dict[str, float] = {}
        self._logged_at = -_REMIND_SECONDS
        self._named = False
        self._gauge = Gauge(
            "svc_missing_rights",
            "1 for each right that this process needs and lacks, on Kafka or ClickHouse.",
            ["right"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        health.probe("rights", self.part)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for ask in self._missing:
                tasks.create_task(self._watch(ask))

    def part(self) -> Part:
        return Part(self._since.keys().isdisjoint(self._stops), self._sentence())

    async def _watch(self, ask: Ask) -> None:
        while True:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    self._missing[ask] = await ask()
            except Exception as error:  # noqa: BLE001 - of any client; other parts report an unreachable server
                log.debug("rights are unknown: %r", error)
            self._report()
            await asyncio.sleep(self._check_seconds)

    def _report(self) -> None:
        missing = [right for rights in self._missing.values() for right in rights]
        for right in self._since.keys() - set(missing):
            self._gauge.labels(right).set(0)
        self._since = {right: self._since.get(right, self._now()) for right in missing}
        for right in missing:
            self._gauge.labels(right).set(1)
        if missing and self._now() - self._logged_at >= _REMIND_SECONDS:
            log.error("%s", self._sentence())
            self._logged_at = self._now()
            self._named = True
        elif self._named and not missing:
            log.warning("all rights are granted again")
            self._named = False

    def _sentence(self) -> str:
        if not self._since:
            return ""
        since = datetime.fromtimestamp(min(self._since.values()), UTC)
        return (
            f"missing since {since:%Y-%m-%dT%H:%M:%SZ}: {', '.join(self._since)}; "
            "grant it (docs/operate/permissions.md lists all rights)"
        )


class KafkaRights:
    """Asks Kafka for the missing rights of a process, on a connection that stays open."""

    def __init__(self, settings: KafkaSettings, need: RequiredRights) -> None:
        self._settings = settings
        self._need = need
        self._names = names_of(need.topics, settings)
        self._connected = AsyncExitStack()
        self._admin: Admin | None = None

    async def __call__(self) -> Sequence[str]:
        """The missing rights. Raises KafkaError or OSError."""
        try:
            if self._admin is None:
                self._admin = await self._connected.enter_async_context(administering(self._settings))
            groups = [*self._need.groups, *self._need.describes_groups]
            view = await describe(self._admin, self._names, groups)
        except BaseException:
            await self.close()
            raise
        return lacking(self._need, self._settings, view.allowed(self._names), view.groups)

    async def close(self) -> None:
        self._admin = None
        await self._connected.aclose()


async def watch_rights(
    settings: KafkaSettings, need: RequiredRights, health: Health, registry: CollectorRegistry, *more: Ask
) -> None:
    """Watch the rights of a process on Kafka, and on what else `more` asks, until cancelled."""
    kafka = KafkaRights(settings, need)
    try:
        await RightsWatch([kafka, *more], health, registry, standstill(need, settings)).run()
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await kafka.close()


async def until_granted(settings: KafkaSettings, need: RequiredRights, stopped: Callable[[], bool]) -> None:
    """Return once Kafka grants the rights, doesn't tell, or `stopped` is true.

    A client that is created without them may notice only minutes later that it has them again.
    """
    kafka = KafkaRights(settings, need)
    try:
        with suppress(KafkaError, OSError):
            while True:
                if stopped() or not await kafka():
                    return
                await asyncio.sleep(_AGAIN_SECONDS)
    finally:
        await kafka.close()
