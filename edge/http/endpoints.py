"""The two endpoints that accept events (protocol, section 4).

The contract fixes the order of the checks (section 2, point 1).
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from edge.delivery.outcome_reports import OutcomeReporter
from edge.delivery.publisher import EventPublisher
from edge.edge_metrics import EdgeMetrics
from edge.http import responses
from edge.http.authentication import authenticate, bearer_token
from edge.http.body import BodyReader, SlowBody
from edge.http.inflate import inflate, inflate_small, is_small
from edge.http.request_headers import RequestHeaders, header_of, named_sdk, read_headers
from edge.limits.body_budget import BodyBudget
from edge.limits.local_window import RateLimiter
from edge.limits.refusal_throttle import RefusalThrottle
from edge.limits.scheduler import LARGE, SMALL, FairScheduler, TimeSlice
from edge.project_snapshot import ProjectSnapshot
from edge.refusals import example_of, reason_of, with_field
from edge.request_errors import RequestError
from edge.validation.validate import (
    LENIENT,
    STRICT,
    InvalidEvents,
    ValidatedBody,
    ValidationRules,
    event_at,
    validate_batch,
    validate_single,
)
from schemas.errors import RejectedEvent, WireError
from schemas.issues import REVOKED, Refusal
from schemas.projects import Project

SHOWN_OF_TOKEN: Final = 4
"""Characters of a revoked token that its project sees, the last ones."""
_OUTCOMES: Final[dict[WireError, Refusal]] = {
    WireError.VALIDATION_FAILED: "invalid",
    WireError.PAYLOAD_TOO_LARGE: "tooLarge",
    WireError.RATE_LIMITED: "rateLimited",
}

Validate = Callable[[bytes, ValidationRules, TimeSlice], Coroutine[Any, Any, ValidatedBody]]


class Ingest(Struct, frozen=True):
    """The endpoints, and the parts that they use."""

    projects: ProjectSnapshot
    limiter: RateLimiter
    publisher: EventPublisher
    metrics: EdgeMetrics
    outcomes: OutcomeReporter
    bodies: BodyReader
    body_budget: BodyBudget
    throttle: RefusalThrottle
    scheduler: FairScheduler

    async def single(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events. Raises RequestError or SlowBody."""
        await self._ingest(request, validate_single)
        return responses.accepted()

    async def batch(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events:batch. Raises RequestError or SlowBody."""
        return responses.batch(*await self._ingest(request, validate_batch))

    async def _ingest(self, request: web.BaseRequest, validate: Validate) -> tuple[int, list[RejectedEvent]]:
        """Store the valid events of a request; the number of accepted events, and the rejected ones."""
        token, project = await self._authenticate(request)
        body = b""
        try:
            head = await self._check_head(request, token, project)
            with self.body_budget.reservation(token) as reservation:
                try:
                    body = await self.bodies.receive(request, head.gzip, reservation)
                except SlowBody:
                    self.metrics.count(project.id, head.sdk, "unavailable", "slow body")
                    raise
                with self.scheduler.time_slice(token) as time_slice:
                    body = await self._decode(body, head, time_slice)
                    lenient = project.lenient_sdks and project.is_lenient(head.sdk)
                    try:
                        events, rejected = await validate(body, LENIENT if lenient else STRICT, time_slice)
                    except InvalidEvents as error:
                        reason = reason_of(error.details)
                        raise RequestError(WireError.VALIDATION_FAILED, reason, error.details) from None
                    refusals = [self._refusal(project, head.sdk, event, body) for event in rejected]
                    accepted = len(events)
                    chunks = self.publisher.put(project, head.sdk, events)
                # Free the text while Kafka is awaited: the next body reuses the memory while it is still in
                # the CPU cache.
                body = b""
                del events
                await self.publisher.wait_stored(chunks)
        except RequestError as error:
            self._count_refusal(project, request, error, body)
            await self._slow_down(request, token, error)
            raise
        if accepted:
            self.metrics.count(project.id, head.sdk, "accepted", "", accepted)
        for reason, named, example in refusals:
            self.metrics.count(project.id, head.sdk, "invalid", reason)
            self.outcomes.count(project.id, head.sdk, "invalid", named, example=example)
        return accepted, rejected

    async def _authenticate(self, request: web.BaseRequest) -> tuple[str, Project]:
        try:
            return authenticate(header_of(request.headers, "Authorization"), self.projects)
        except RequestError as error:
            outcome = "unauthorized" if error.error is WireError.UNAUTHORIZED else "unavailable"
            sdk = named_sdk(request.headers)
            self.metrics.count("", sdk, outcome, error.reason)
            self._count_revoked(request, sdk)
            await self._slow_down(request, "", error)
            raise

    def _count_revoked(self, request: web.BaseRequest, sdk: str) -> None:
        """Count a request with a revoked token for the token's project.

        The sender gets the same answer as for an unknown token.
        """
        token = bearer_token(header_of(request.headers, "Authorization"))
        project = self.projects.by_revoked_token(token) if token is not None else None
        if token is not None and project is not None:
            self.outcomes.count(project.id, sdk, REVOKED, token[-SHOWN_OF_TOKEN:])

    async def _check_head(self, request: web.BaseRequest, token: str, project: Project) -> RequestHeaders:
        wait_ms = await self.limiter.acquire(token, project.rate_limit_per_minute)
        if wait_ms:
            raise RequestError(WireError.RATE_LIMITED, "requests a minute", retry_after_ms=wait_ms)
        return read_headers(request.headers)

    async def _slow_down(self, request: web.BaseRequest, token: str, error: RequestError) -> None:
        """Delay the response to a client that is refused repeatedly; its unread body is not received meanwhile."""
        wait = self.throttle.wait_seconds(token) if error.error.status < 500 else 0.0
        if not wait or (transport := request.transport) is None or transport.is_closing():
            return
        transport.pause_reading()
        await asyncio.sleep(wait)
        if not transport.is_closing():
            transport.resume_reading()

    async def _decode(self, data: bytes, head: RequestHeaders, time_slice: TimeSlice) -> bytes:
        """Wait for a time slice, then inflate.

        A large body stays compressed while it waits: inflated, it takes 8 to 1,000 times as much memory.
        """
        body = None
        if is_small(data, head.gzip):
            await time_slice.begin(SMALL)
            body = inflate_small(data) if head.gzip else data
        if body is None:
            await time_slice.begin(LARGE)
            body = inflate(data) if head.gzip else data
        self.metrics.body_bytes.inc(len(body))
        return body

    def _refusal(
        self, project: Project, sdk: str, rejected: RejectedEvent, body: bytes
    ) -> tuple[str, str, str]:
        """The reason of a rejected event of a batch, the reason with its field, and an example.

        The example is empty if the reason already has one in this minute.
        """
        details, example = rejected.details, ""
        reason = reason_of(details)
        named = with_field(reason, details)
        if self.outcomes.needs_example(project.id, sdk, "invalid", named):
            example = example_of(details, event_at(body, rejected.index))
        return reason, named, example

    def _count_refusal(
        self, project: Project, request: web.BaseRequest, error: RequestError, body: bytes
    ) -> None:
        sdk, details = named_sdk(request.headers), error.details or ()
        outcome = _OUTCOMES.get(error.error)
        self.metrics.count(project.id, sdk, outcome or "unavailable", error.reason)
        if outcome is None:
            return
        named, example = with_field(error.reason, details), ""
        if details and self.outcomes.needs_example(project.id, sdk, outcome, named):
            example = example_of(details, body)
        self.outcomes.count(project.id, sdk, outcome, named, example=example)
