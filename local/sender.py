"""Posting batches to the ingest endpoint with several requests in flight, by the client's rules of the protocol (section 7)."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from local.batches import Batch

IN_FLIGHT = 4
BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
PROBLEMS = 10
TOO_MANY = 429


@dataclass
class Report:
    """What became of the events. `refused` counts those whose whole batch was not taken."""

    events: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    batches: int = 0
    retries: int = 0
    seconds: float = 0.0
    last_posted: float = 0.0  # time.monotonic() at which the last accepted request was begun
    problems: list[dict[str, Any]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """True when every event was accepted."""
        return self.accepted == self.events

    def add_problem(self, index: int, reason: str, details: object) -> None:
        """Keep the first few reasons; `index` is that of the event, or of its batch's first one."""
        if len(self.problems) < PROBLEMS:
            self.problems.append({"index": index, "error": reason, "details": details})


def retry_pause(status: int, answer: dict[str, Any], attempt: int) -> float | None:
    """Seconds to wait before the next attempt, or None where another one is of no use."""
    backoff = BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS) - 1)]
    if status == TOO_MANY:
        return max(backoff, float(answer.get("retryAfterMs", 0)) / 1000)
    return backoff if status >= 500 or status == 0 else None


class Sender:
    """Sends batches to one ingest address with one token.

    `rate` is events a second (None: as fast as answers come), `retry_for` the seconds for which one batch is tried again.
    """

    def __init__(
        self,
        url: str,
        token: str,
        sdk: str = "svc-send/0.1.0",
        rate: float | None = None,
        retry_for: float = 60.0,
        progress: Callable[[Report], object] = lambda _: None,
    ) -> None:
        self._url = f"{url.rstrip('/')}/v1/events:batch"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Svc-Sdk": sdk,
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
        }
        self._rate = rate
        self._retry_for = retry_for
        self._progress = progress
        self.report = Report()

    async def send(self, batches: Iterable[Batch]) -> Report:
        """Send everything; the report grows meanwhile and is returned at the end. Raises nothing of the network's."""
        began = time.monotonic()
        shared = iter(batches)
        timeout = aiohttp.ClientTimeout(total=60)
        async with (
            aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(IN_FLIGHT):
                group.create_task(self._work(session, shared, began))
        self.report.seconds += time.monotonic() - began
        self.report.problems.sort(key=lambda problem: int(problem["index"]))
        return self.report

    async def _work(self, session: aiohttp.ClientSession, shared: Iterator[Batch], began: float) -> None:
        for batch in shared:
            self.report.batches += 1
            before, self.report.events = self.report.events, self.report.events + len(batch.events)
            if self._rate:
                await asyncio.sleep(began + before / self._rate - time.monotonic())
            await self._deliver(session, batch)
            self._progress(self.report)

    async def _deliver(self, session: aiohttp.ClientSession, batch: Batch) -> None:
        give_up = time.monotonic() + self._retry_for
        body, attempt = batch.body, 0
        while True:
            posted = time.monotonic()
            status, answer = await self._post(session, body)
            if status == 202:
                self.report.last_posted = max(self.report.last_posted, posted)
                self._count(batch, answer)
                return
            pause = retry_pause(status, answer, attempt)
            if pause is None or time.monotonic() + pause > give_up:
                self.report.refused += len(batch.events)
                reason = f"{status or 'no answer'} {answer.get('error', '')}".strip()
                self.report.add_problem(batch.first, reason, answer.get("details", []))
                return
            self.report.retries += 1
            attempt += 1
            await asyncio.sleep(pause)

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and decoded answer; status 0 and the reason as `error` when there was no answer."""
        try:
            async with session.post(self._url, data=body) as response:
                answer = await response.json(content_type=None)
                return response.status, answer if isinstance(answer, dict) else {}
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, {"error": str(error) or type(error).__name__}
        except ValueError:
            return response.status, {"error": "the answer is not JSON"}

    def _count(self, batch: Batch, answer: dict[str, Any]) -> None:
        self.report.accepted += int(answer.get("accepted", 0))
        self.report.rejected += int(answer.get("rejected", 0))
        for error in answer.get("errors", []):
            self.report.add_problem(batch.first + error["index"], error["error"], error.get("details", []))
