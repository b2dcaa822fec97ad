"""Waits for a process's rights before it starts: without one a client hangs, or retries forever."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, UnsupportedVersionError

from broker.cluster import describe_cluster
from broker.kafka_diagnosis import why_unreachable
from broker.rights import RequiredRights, lacking, names_of, rights_of
from schemas.health import Health
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

Ask = Callable[[], Awaitable[Sequence[str]]]
"""The rights that another server refuses; any exception means that it doesn't tell."""
_ANSWER_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 1.0
_EXPLAIN_EVERY: Final = 20
"""Attempts between two diagnoses; without a response each takes seconds."""


async def wait_for_rights(
    settings: KafkaSettings, need: RequiredRights, *more: Ask, health: Health | None = None
) -> None:
    """Return once Kafka, and the servers of `more`, grant all rights that a process begins with.

    The log and the part `rights` name those that are missing. A server that can't report rights counts as
    granting them.
    """
    optional = {*map(str, rights_of(need, settings))} - {*map(str, rights_of(need.to_start, settings))}
    attempt = 0
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                missing = await missing_rights(settings, need)
        except (IncompatibleBrokerVersion, UnsupportedVersionError) as error:
            log.warning(
                "Kafka can't report the rights of these credentials: %s",
                error,
                extra={"event": "rights_unreported"},
            )
            missing = []
        except (KafkaError, OSError, TimeoutError) as error:
            diagnose = attempt % _EXPLAIN_EVERY == 0
            reason = await asyncio.to_thread(why_unreachable, settings) if diagnose else None
            log.warning(
                "can't reach Kafka, retrying: %s",
                reason or str(error) or "no response",
                extra={"event": "kafka_unreachable"},
            )
            attempt += 1
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        for ask in more:
            missing += await _refused(ask)
        sentence = f"missing: {', '.join(missing)}; docs/operate/permissions.md lists all rights"
        if missing:
            log.error("%s", sentence, extra={"event": "rights_missing"})
        begins = optional.issuperset(missing)
        if health is not None:
            health.set("rights", ok=begins, detail="" if begins else sentence)
        if begins:
            return
        await asyncio.sleep(_RETRY_SECONDS)


async def missing_rights(settings: KafkaSettings, need: RequiredRights) -> list[str]:
    """The rights that Kafka refuses at the moment. Raises KafkaError or OSError."""
    names = names_of(need.topics, settings)
    view = await describe_cluster(settings, names, [*need.groups, *need.describes_groups])
    return lacking(need, settings, view.allowed(names), view.groups)


async def _refused(ask: Ask) -> Sequence[str]:
    try:
        return await ask()
    except Exception as error:  # noqa: BLE001 - of any client; other parts report an unreachable server
        log.debug("can't check the rights on a server: %r", error, extra={"event": "rights_unknown"})
        return ()
