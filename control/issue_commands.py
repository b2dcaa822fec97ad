"""Commands to issues: sent to the topic `issue-deltas`, their effect read back from the topic `issues`."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from broker.client import name_of, open_consumer, open_producer
from broker.errors import KafkaError, TopicAuthorizationFailedError
from broker.types import Consumer, Producer, TopicPartition
from schemas.errors import ChangePending, ChangesUnavailable
from schemas.idempotency import is_repeat
from schemas.ids import uuid7
from schemas.issues import Command, DeltaRecord, IssueRecord, decode_issue, encode_json
from schemas.life import destination
from schemas.settings import KafkaSettings
from schemas.times import iso
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
        """Send commands, one per issue; return by issue the record that knows its command.

        The command is fully applied, or refused (`is_made`). The record is that of another issue where the
        named one is merged. After the deadline, raises ChangePending, or ChangesUnavailable if nothing was
        sent. Raises KeyReused if the issue knows the key from another command.
        """
        sending = asyncio.Event()
        try:
            async with asyncio.timeout(self._deadline):
                return await self._settled({command.issue: command for command in commands}, sending)
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning(
                "%d issue commands not confirmed, are the processors running? written to %s, read back from %s: %r",
                len(commands),
                self._deltas,
                self._issues,
                error,
                extra={"event": "issue_commands_unconfirmed"},
            )
            if sending.is_set():
                raise ChangePending(
                    "the change was not confirmed in time and is still being applied"
                ) from error
            raise ChangesUnavailable("Kafka did not answer in time; nothing was changed") from error

    async def show(self, issues: Sequence[str]) -> dict[str, IssueRecord]:
        """The present record of each issue, or of the issue it is merged into.

        Raises ChangesUnavailable, also for an issue without a record.
        """
        at = iso(time.time_ns() // 1_000_000)
        try:
            async with asyncio.timeout(self._deadline):
                questions = {issue: Command(str(uuid7()), issue, "", "show", "", at) for issue in issues}
                return await self._settled(questions, asyncio.Event())
        except (TimeoutError, KafkaError, OSError) as error:
            raise ChangesUnavailable("the processors did not answer in time; nothing was changed") from error

    async def send(self, commands: Sequence[Command]) -> None:
        """Send commands and wait for Kafka only, not for their effect. Raises ChangesUnavailable on timeout."""
        try:
            async with (
                asyncio.timeout(self._deadline),
                open_producer(self._settings, enable_idempotence=False) as producer,
            ):
                partitions = await producer.partitions_for(self._deltas)
                await self._send(producer, commands, len(partitions))
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning(
                "%d issue commands not written to %s, nothing was changed: %r",
                len(commands),
                self._deltas,
                error,
                extra={"event": "issue_commands_write_failed"},
            )
            raise ChangesUnavailable("the changes could not be sent in time") from error

    async def _settled(self, commands: dict[str, Command], sending: asyncio.Event) -> dict[str, IssueRecord]:
        reader = open_consumer(self._settings, auto_offset_reset="latest", fetch_max_wait_ms=_FETCH_WAIT_MS)
        async with reader as consumer, open_producer(self._settings, enable_idempotence=False) as producer:
            await consumer._client.add_topic(self._issues)
            await consumer._client.force_metadata_update()
            partitions = len(consumer.partitions_for_topic(self._issues) or ())
            if not partitions:
                if self._issues in consumer._client.cluster.unauthorized_topics:
                    raise TopicAuthorizationFailedError(self._issues)
                raise ChangesUnavailable("the topics are missing: run `svc migrate`")
            found: dict[str, IssueRecord] = {}
            waiting = commands
            while waiting:
                await self._seek_end(consumer, waiting, partitions)
                sending.set()
                await self._send(producer, waiting.values(), partitions)
                found |= await _effects(consumer, waiting)
                # A command that a merged issue has forwarded is also sent to that issue, which applies it once
                # and publishes its record.
                waiting = {
                    target: replace(command, issue=target)
                    for issue, command in waiting.items()
                    if (target := forwarded_to(found[issue], command)) and target not in found
                }
            return {issue: _last(found, command) for issue, command in commands.items()}

    async def _seek_end(self, consumer: Consumer, issues: Iterable[str], partitions: int) -> None:
        """Read the partitions of these issues from their present end; called before sending, so no effect is missed."""
        assigned = [
            TopicPartition(self._issues, number) for number in {int(i, 16) % partitions for i in issues}
        ]
        consumer.assign(assigned)
        for tp, end in (await consumer.end_offsets(assigned)).items():
            consumer.seek(tp, end)

    async def _send(self, producer: Producer, commands: Iterable[Command], partitions: int) -> None:
        sent = [
            await producer.send(
                self._deltas,
                encode_json(DeltaRecord(command=command)),
                partition=int(command.issue, 16) % partitions,
            )
            for command in commands
        ]
        await asyncio.gather(*sent)


async def _effects(consumer: Consumer, commands: dict[str, Command]) -> dict[str, IssueRecord]:
    settled: dict[str, IssueRecord] = {}
    while len(settled) < len(commands):
        for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
            for record in records:
                issue = (record.key or b"").decode()
                command = commands.get(issue)
                if command is None or record.value is None:
                    continue
                state = decode_issue(record.value)
                if is_settled(state, command):
                    settled[issue] = state
    return settled


def _last(found: dict[str, IssueRecord], command: Command) -> IssueRecord:
    record = found[command.issue]
    passed = {record.id}
    while (target := forwarded_to(record, command)) and target not in passed:
        record = found[target]
        passed.add(target)
    return record


def is_settled(state: IssueRecord, command: Command) -> bool:
    """Whether the record of the command's issue answers it: applied, forwarded or refused. Raises KeyReused."""
    is_answered = destination(command.id, state.life.signals) is not None
    return command.kind == "show" or is_answered or is_done(state, command.id)


def forwarded_to(state: IssueRecord, command: Command) -> str | None:
    """The issue that a settled command was forwarded to."""
    if command.kind == "show":
        return state.merged_into
    return destination(command.id, state.life.signals) or None


def is_made(state: IssueRecord, command: Command) -> bool:
    """Whether a settled command was applied; else the issue refused it."""
    return command.id in state.life.commands


def is_done(state: IssueRecord, command: str) -> bool:
    """Whether a command is applied, with no answer of another issue pending.

    Raises KeyReused if another command was applied under its key.
    """
    life = state.life
    return is_repeat(command, life.commands) and not any(
        request.command == command for request in life.pending.values()
    )
