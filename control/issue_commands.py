"""Commands to issues: sent to the topic `issue-deltas`, their effect read back from the topic `issues`."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from broker.client import name_of, reading, writing
from broker.errors import KafkaError
from broker.types import Consumer, TopicPartition
from schemas.errors import ChangesUnavailable
from schemas.idempotency import is_repeat
from schemas.issues import Command, DeltaRecord, IssueRecord, decode_issue, encode_json
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

_FETCH_WAIT_MS: Final = 100
_POLL_MS: Final = 200


class Commands:
    """Sends commands. Each call opens its own connections: changes are rare, and connecting takes 30 ms."""

    def __init__(self, settings: KafkaSettings, deadline_seconds: float = 2.0) -> None:
        self._settings = settings
        self._deadline = deadline_seconds
        self._deltas = name_of(settings, Topic.ISSUE_DELTAS)
        self._issues = name_of(settings, Topic.ISSUES)

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        """Send commands, one per issue; return each issue's record once its command is fully applied.

        Raises ChangesUnavailable after the deadline, and KeyReused if the issue knows the key from another
        command.
        """
        try:
            async with asyncio.timeout(self._deadline):
                return await self._applied({command.issue: command for command in commands})
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning("%d changes not confirmed: %r", len(commands), error)
            raise ChangesUnavailable("the change was not confirmed in time") from error

    async def send(self, commands: Sequence[Command]) -> None:
        """Send commands and wait for Kafka only, not for their effect. Raises ChangesUnavailable on timeout."""
        try:
            async with (
                asyncio.timeout(self._deadline),
                writing(self._settings, enable_idempotence=False) as producer,
            ):
                partitions = await producer.partitions_for(self._deltas)
                sent = [
                    await producer.send(
                        self._deltas,
                        encode_json(DeltaRecord(command=command)),
                        partition=int(command.issue, 16) % len(partitions),
                    )
                    for command in commands
                ]
                await asyncio.gather(*sent)
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning("%d changes not sent: %r", len(commands), error)
            raise ChangesUnavailable("the changes could not be sent in time") from error

    async def _applied(self, commands: dict[str, Command]) -> dict[str, IssueRecord]:
        reader = reading(self._settings, auto_offset_reset="latest", fetch_max_wait_ms=_FETCH_WAIT_MS)
        async with reader as consumer, writing(self._settings, enable_idempotence=False) as producer:
            await consumer._client.add_topic(self._issues)
            await consumer._client.force_metadata_update()
            partitions = consumer.partitions_for_topic(self._issues)
            if not partitions:
                raise ChangesUnavailable("the topics are missing: run `svc migrate`")
            partition_of = {issue: int(issue, 16) % len(partitions) for issue in commands}
            assigned = [TopicPartition(self._issues, partition) for partition in set(partition_of.values())]
            consumer.assign(assigned)
            # Seek before sending: an effect can't be missed then.
            for tp, end in (await consumer.end_offsets(assigned)).items():
                consumer.seek(tp, end)
            sent = [
                await producer.send(
                    self._deltas, encode_json(DeltaRecord(command=command)), partition=partition_of[issue]
                )
                for issue, command in commands.items()
            ]
            await asyncio.gather(*sent)
            return await _effects(consumer, commands)


async def _effects(consumer: Consumer, commands: dict[str, Command]) -> dict[str, IssueRecord]:
    applied: dict[str, IssueRecord] = {}
    while len(applied) < len(commands):
        for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
            for record in records:
                issue = (record.key or b"").decode()
                command = commands.get(issue)
                if command is None or record.value is None:
                    continue
                state = decode_issue(record.value)
                if is_done(state, command.id):
                    applied[issue] = state
    return {issue: applied[issue] for issue in commands}


def is_done(state: IssueRecord, command: str) -> bool:
    """Whether a command is applied, with no answer of another issue pending.

    Raises KeyReused if another command was applied under its key.
    """
    life = state.life
    return is_repeat(command, life.commands) and not any(
        request.command == command for request in life.pending.values()
    )
