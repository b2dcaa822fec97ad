"""What a process asks of Kafka before it begins: that a broker answers, and that it may do there what it has to.

A client without a right waits for ever, or logs and tries again; so the process ends with a line that names the right.
"""

import asyncio
import logging
from typing import Final

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, UnsupportedVersionError

from broker.cluster import look
from broker.diagnosis import why_unreachable
from broker.rights import RequiredRights, lacking
from schemas.errors import CannotRun
from schemas.settings import KafkaSettings
from schemas.topics import topic_name

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 1.0
_EXPLAIN_EVERY: Final = 20
"""Tries between two looks for the reason, which take seconds where nobody answers."""


async def check_rights(settings: KafkaSettings, need: RequiredRights) -> None:
    """Return once a broker has answered that nothing of `need` is missing. Waits for a broker; raises CannotRun.

    A broker that can't tell rights is believed to grant them.
    """
    attempt = 0
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                missing = await _missing(settings, need)
        except (IncompatibleBrokerVersion, UnsupportedVersionError) as error:
            log.warning("Kafka doesn't tell what these credentials may do: %s", error)
            return
        except (KafkaError, OSError, TimeoutError) as error:
            looked = attempt % _EXPLAIN_EVERY == 0
            reason = await asyncio.to_thread(why_unreachable, settings) if looked else None
            log.warning("Kafka: %s", reason or str(error) or "no answer")
            attempt += 1
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        if missing:
            user = settings.kafka_username
            raise CannotRun(
                f"Kafka refuses {f'user {user!r}' if user else 'these credentials'}: {', '.join(missing)} is missing; "
                "grant it (docs/operate/permissions.md lists all rights)"
            )
        return


async def _missing(settings: KafkaSettings, need: RequiredRights) -> list[str]:
    topics = dict.fromkeys([*need.reads, *need.writes])
    names = [topic_name(topic, settings.topic_prefix, settings.topic_overrides) for topic in topics]
    view = await look(settings, names, need.groups)
    return lacking(need, settings, view.allowed(names), view.groups)
