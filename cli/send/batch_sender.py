"""Posts batches to the ingest endpoint with several requests in flight, by the protocol's retry rules (section 7)."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cli.send.send_batches import SendBatch
from schemas.version import service_version
from svc.answers import Answer, RetryPolicy
from svc.upload import Uploader

IN_FLIGHT = 4
BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
PROBLEMS = 10
SDK = f"svc-send/{service_version()}"


@dataclass
class SendReport:
    """The outcome. `refused` counts the events of batches that were refused as a whole."""

    events: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    batches: int = 0
    retries: int = 0
    seconds: float = 0.0
    last_posted: float = 0.0  # time.monotonic() of the start of the last accepted request
    problems: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # files that could not be read completely, with the error

    @property
    def clean(self) -> bool:
        """True if every event was read and accepted."""
        return self.accepted == self.events and not self.unread

    def add_problem(self, index: int, reason: str, details: object) -> None:
        """Record the first few reasons; `index` is that of the event, or of its batch's first event."""
        if len(self.problems) < PROBLEMS:
            self.problems.append({"index": index, "error": reason, "details": details})


def retry_pause(answer: Answer, throttle: RetryPolicy, attempt: int) -> float | None:
    """Seconds to wait before the next attempt, or None if a retry is useless.

    429 follows the library's rule. The library gives up after three failures (5xx or no answer); this tool continues.
    """
    if answer.status == 429:
        return throttle.after(answer).wait
    if answer.status and answer.status < 500:
        return None
    return max(BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS) - 1)], answer.wait)


class Sender:
    """Sends batches to an ingest address over the reporting library's connections.

    `rate` is events per second (None: as fast as possible); a batch is retried for `retry_for` seconds.
    """

    def __init__(
        self,
        url: str,
        token: str,
        sdk: str = SDK,
        rate: float | None = None,
        retry_for: float = 60.0,
        progress: Callable[[SendReport], object] = lambda _: None,
    ) -> None:
        self._uploaders = [Uploader(url, token, sdk, timeout=60.0) for _ in range(IN_FLIGHT)]
        self._rate = rate
        self._retry_for = retry_for
        self._progress = progress
        self.report = SendReport()

    async def send(self, batches: Iterable[SendBatch]) -> SendReport:
        """Send everything and return the report, which is updated meanwhile. Raises no network errors."""
        began = time.monotonic()
        shared = iter(batches)
        async with asyncio.TaskGroup() as group:
            for uploader in self._uploaders:
                group.create_task(self._work(uploader, shared, began))
        self.report.seconds += time.monotonic() - began
        return self.report

    async def _work(self, uploader: Uploader, shared: Iterator[SendBatch], began: float) -> None:
        try:
            for batch in shared:
                self.report.batches += 1
                before, self.report.events = self.report.events, self.report.events + len(batch.events)
                if self._rate:
                    await asyncio.sleep(began + before / self._rate - time.monotonic())
                await self._deliver(uploader, batch)
                self._progress(self.report)
        finally:
            uploader.close()

    async def _deliver(self, uploader: Uploader, batch: SendBatch) -> None:
        give_up = time.monotonic() + self._retry_for
        throttle, attempt = RetryPolicy(), 0
        while True:
            posted = time.monotonic()
            answer = await asyncio.to_thread(uploader.post, batch.events)
            if answer.status == 202:
                self.report.last_posted = max(self.report.last_posted, posted)
                self._count(batch, answer)
                return
            pause = retry_pause(answer, throttle, attempt)
            if pause is None or time.monotonic() + pause > give_up:
                self._refuse(batch, answer)
                return
            self.report.retries += 1
            attempt += 1
            await asyncio.sleep(pause)

    def _count(self, batch: SendBatch, answer: Answer) -> None:
        self.report.accepted += answer.accepted
        self.report.rejected += len(answer.errors)
        for error in answer.errors:
            self.report.add_problem(batch.first + error["index"], error["error"], error.get("details", []))

    def _refuse(self, batch: SendBatch, answer: Answer) -> None:
        self.report.refused += len(batch.events)
        try:
            body = json.loads(answer.why)
        except ValueError:
            body = {"error": answer.why}
        why = str(body.get("error", ""))
        reason = f"{answer.status} {why}".strip() if answer.status else f"no answer: {_words(why)}"
        self.report.add_problem(batch.first, reason, body.get("details", []))


def _words(why: str) -> str:
    """The words of an exception's name and number, such as `ConnectionRefusedError(111, 'Connection refused')`."""
    match = re.search(r"'([^']+)'\)?$", why)
    return match[1] if match else why
