"""Sends the outgoing messages, and records the outcome of each attempt."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from notify.channels import Channel, NotDelivered
from notify.fair_slots import FairSlots
from notify.notification_fold import Outgoing
from notify.notify_metrics import NotifyMetrics
from notify.readable_message import ReadableMessage
from schemas.notifications import DeliveryRecord

log = logging.getLogger(__name__)

PAUSES_SECONDS: Final = (1, 5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600)
"""Pauses after each failed attempt; after one more the message is given up."""
AT_ONCE: Final = 8
"""Messages that a channel sends concurrently: one that hangs must not delay all others. Projects take turns."""

Write = Callable[[Outgoing], Awaitable[ReadableMessage]]
Report = Callable[[DeliveryRecord], Awaitable[None]]


class MessageSender:
    """Sends each outgoing message once at a time; `report` gets the outcome of each attempt."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        write: Write,
        report: Report,
        now_ms: Callable[[], int],
        seconds: float,
        metrics: NotifyMetrics,
    ) -> None:
        self._channels = channels
        self._write = write
        self._report = report
        self._now_ms = now_ms
        self._seconds = seconds
        self._metrics = metrics
        self._slots = {name: FairSlots(AT_ONCE) for name in channels}
        self._sending: dict[str, asyncio.Task[None]] = {}

    def send_due(self, outgoing: Mapping[str, Outgoing]) -> None:
        """Begin to send the due messages that aren't being sent."""
        now_ms = self._now_ms()
        for name, message in outgoing.items():
            if message.next_ms <= now_ms and name not in self._sending:
                task = asyncio.create_task(self._send(message))
                self._sending[name] = task

    def forget(self, name: str) -> None:
        """The outcome of an attempt is in the log: the message may be sent again, if it still is outgoing."""
        self._sending.pop(name, None)

    async def stop(self) -> None:
        """Cancel the running attempts; the next leader sends these messages again."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._sending.clear()

    async def _send(self, outgoing: Outgoing) -> None:
        error = await self._attempt(outgoing)
        now_ms, attempts = self._now_ms(), outgoing.attempts + 1
        self._metrics.attempts.labels(outgoing.channel, "failed" if error else "delivered").inc()
        next_ms = 0
        is_test = outgoing.decision.is_test
        if error and not is_test and attempts <= len(PAUSES_SECONDS):
            next_ms = now_ms + PAUSES_SECONDS[attempts - 1] * 1000
        if error and not is_test and not next_ms:
            self._metrics.given_up.inc()
        if error:
            log.warning(
                "%s: not delivered, attempt %d: %s",
                outgoing.id,
                attempts,
                error,
                extra={"event": "delivery_failed"},
            )
        await self._report(DeliveryRecord(now_ms, outgoing.id, not error, attempts, next_ms, error))

    async def _attempt(self, outgoing: Outgoing) -> str:
        """Send once; returns why it failed, or an empty text."""
        channel = self._channels.get(outgoing.channel)
        if channel is None:
            return f"SVC_NOTIFY_CHANNELS has no channel {outgoing.channel}"
        async with self._slots[outgoing.channel].held(outgoing.project_id):
            message = await self._write(outgoing)
            try:
                async with asyncio.timeout(self._seconds):
                    await channel.send(message)
            except TimeoutError:
                return "no answer in time"
            except NotDelivered as error:
                return str(error)
            except Exception as error:
                # Libraries raise errors of any type, and the message must not be forgotten.
                log.exception("%s: the channel's code failed", outgoing.id, extra={"event": "channel_failed"})
                return type(error).__name__
        return ""
