"""Waits for a process's Kafka rights before it starts: without one a client hangs, or retries for ever."""

import asyncio
import logging
from typing import Final

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, UnsupportedVersionError

from broker.cluster import describe_cluster
from broker.diagnosis import why_unreachable
from broker.rights import RequiredRights, lacking, names_of
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 1.0
_EXPLAIN_EVERY: Final = 20
"""Attempts between two diagnoses, which take seconds if nobody responds."""


async def until_allowed(settings: KafkaSettings, need: RequiredRights) -> None:
    """Return once a broker grants all rights in `need` that a process begins with.

    `broker.rights_watch` names those that it refuses. A broker that can't report rights counts as granting
    them.
    """
    attempt = 0
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                missing = await missing_rights(settings, need.to_start)
        except (IncompatibleBrokerVersion, UnsupportedVersionError) as error:
            log.warning("Kafka can't report the rights of these credentials: %s", error)
            return
        except (KafkaError, OSError, TimeoutError) as error:
            diagnose = attempt % _EXPLAIN_EVERY == 0
            reason = await asyncio.to_thread(why_unreachable, settings) if diagnose else None
            log.warning("cannot reach Kafka, retrying: %s", reason or str(error) or "no response")
            attempt += 1
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        if not missing:
            return
        await asyncio.sleep(_RETRY_SECONDS)


async def missing_rights(settings: KafkaSettings, need: RequiredRights) -> list[str]:
    """The rights that Kafka refuses at the moment. Raises KafkaError or OSError."""
    names = names_of(need.topics, settings)
    view = await describe_cluster(settings, names, need.groups)
    return lacking(need, settings, view.allowed(names), view.groups)
