"""The two endpoints that take events (protocol, section 4), each check in the order of the contract, section 2, point 1."""

import asyncio
from typing import Final

from aiohttp import web
from msgspec import Struct

from edge.delivery.outcomes import OutcomeReporter, Refusal
from edge.delivery.produce import EventPublisher
from edge.http import responses
from edge.http.auth import authenticate
from edge.http.request import BodyReader, SlowBody, inflate, inflate_small, is_small
from edge.http.errors import RequestError
from edge.http.headers import RequestHeaders, named_sdk, read_headers
from edge.limits.body_budget import BodyBudget, BodyReservation
from edge.limits.rate_limit import RateLimiter
from edge.limits.refusal_throttle import RefusalThrottle
from edge.limits.scheduler import LARGE, SMALL, FairScheduler, TimeSlice
from edge.metrics import EdgeMetrics
from edge.project_snapshot import ProjectSnapshot
from edge.validation.scheduling import validate_batch, validate_single
from edge.validation.validate import LENIENT, STRICT, InvalidEvents, ValidationRules
from schemas.errors import Detail, WireError
from schemas.limits import Limit
from schemas.projects import Project

_OUTCOMES: Final[dict[WireError, Refusal]] = {
    WireError.VALIDATION_FAILED: "invalid",
    WireError.PAYLOAD_TOO_LARGE: "tooLarge",
    WireError.RATE_LIMITED: "rateLimited",
}
_LIMIT_REASONS: Final = {limit.sentence: limit.title for limit in Limit}


class Ingest(Struct, frozen=True):
    """The parts that an endpoint needs."""

    projects: ProjectSnapshot
    limiter: RateLimiter
    publisher: EventPublisher
    metrics: EdgeMetrics
    outcomes: OutcomeReporter
    bodies: BodyReader
    held: BodyBudget
    throttle: RefusalThrottle
    scheduler: FairScheduler

    async def single(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events. Raises Fault or SlowBody."""
        token, project = await self._authenticate(request)
        try:
            head = await self._check(request, token, project)
            with self.held.of(token) as held:
                body = await self._receive(request, project, head, held)
                with self.scheduler.time_slice(token) as time_slice:
                    body = await self._decoded(body, head, time_slice)
                    try:
                        event = await validate_single(body, _rules(project, head.sdk), time_slice)
                    except InvalidEvents as refused:
                        raise _invalid(refused) from None
                    chunks = self.publisher.put(project, head.sdk, (event,))
                await self.publisher.wait_stored(chunks)
        except RequestError as fault:
            self._count_refusal(project, request, fault)
            await self._slow_down(request, token, fault)
            raise
        self.metrics.count(project.id, head.sdk, "accepted", "")
        return responses.accepted()

    async def batch(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events:batch. Raises Fault or SlowBody."""
        token, project = await self._authenticate(request)
        try:
            head = await self._check(request, token, project)
            with self.held.of(token) as held:
                body = await self._receive(request, project, head, held)
                with self.scheduler.time_slice(token) as time_slice:
                    body = await self._decoded(body, head, time_slice)
                    try:
                        events, rejected = await validate_batch(body, _rules(project, head.sdk), time_slice)
                    except InvalidEvents as refused:
                        raise _invalid(refused) from None
                    accepted = len(events)
                    chunks = self.publisher.put(project, head.sdk, events)
                # What waits for Kafka shouldn't hold its text: the next body takes the place, which is still in the cache.
                del body, events
                await self.publisher.wait_stored(chunks)
        except RequestError as fault:
            self._count_refusal(project, request, fault)
            await self._slow_down(request, token, fault)
            raise
        if accepted:
            self.metrics.count(project.id, head.sdk, "accepted", "", accepted)
        for event in rejected:
            self._count(project.id, head.sdk, "invalid", _reason(event.details))
        return responses.batch(accepted, rejected)

    async def _authenticate(self, request: web.BaseRequest) -> tuple[str, Project]:
        try:
            return authenticate(request.headers.get("Authorization"), self.projects)
        except RequestError as fault:
            outcome = "unauthorized" if fault.error is WireError.UNAUTHORIZED else "unavailable"
            self.metrics.count("", named_sdk(request.headers), outcome, fault.reason)
            await self._slow_down(request, "", fault)
            raise

    async def _slow_down(self, request: web.BaseRequest, token: str, fault: RequestError) -> None:
        """Let the answer wait where the sender is refused over and over; its body, which nobody reads, is not taken in meanwhile."""
        wait = self.throttle.wait_seconds(token) if fault.error.status < 500 else 0.0
        if not wait or (transport := request.transport) is None or transport.is_closing():
            return
        transport.pause_reading()
        await asyncio.sleep(wait)
        if not transport.is_closing():
            transport.resume_reading()

    async def _check(self, request: web.BaseRequest, token: str, project: Project) -> RequestHeaders:
        wait_ms = await self.limiter.acquire(token, project.rate_limit_per_minute)
        if wait_ms:
            raise RequestError(WireError.RATE_LIMITED, "requests a minute", retry_after_ms=wait_ms)
        return read_headers(request.headers)

    async def _receive(
        self, request: web.BaseRequest, project: Project, head: RequestHeaders, held: BodyReservation
    ) -> bytes:
        try:
            return await self.bodies.receive(request, head.gzip, held)
        except SlowBody:
            self.metrics.count(project.id, head.sdk, "unavailable", "slow body")
            raise

    async def _decoded(self, data: bytes, head: RequestHeaders, time_slice: TimeSlice) -> bytes:
        """What isn't small waits for its turn as it came: inflated it would take eight times the memory, and up to a thousand."""
        body = None
        if is_small(data, head.gzip):
            await time_slice.begin(SMALL)
            body = inflate_small(data) if head.gzip else data
        if body is None:
            await time_slice.begin(LARGE)
            body = inflate(data) if head.gzip else data
        self.metrics.body_bytes.inc(len(body))
        return body

    def _count_refusal(self, project: Project, request: web.BaseRequest, fault: RequestError) -> None:
        sdk = named_sdk(request.headers)
        outcome = _OUTCOMES.get(fault.error)
        if outcome is None:
            self.metrics.count(project.id, sdk, "unavailable", fault.reason)
        else:
            self._count(project.id, sdk, outcome, fault.reason)

    def _count(self, project: str, sdk: str, outcome: Refusal, reason: str) -> None:
        self.metrics.count(project, sdk, outcome, reason)
        self.outcomes.count(project, sdk, outcome, reason)


def _rules(project: Project, sdk: str) -> ValidationRules:
    return LENIENT if project.lenient_sdks and project.is_lenient(sdk) else STRICT


def _invalid(refused: InvalidEvents) -> RequestError:
    return RequestError(WireError.VALIDATION_FAILED, _reason(refused.details), refused.details)


def _reason(details: list[Detail]) -> str:
    """One of a few words for counting: a limit's name, or where the fault lies."""
    for detail in details:
        if detail.message in _LIMIT_REASONS:
            return _LIMIT_REASONS[detail.message]
    return details[0].field if details[0].field in {"body", "events"} else "schema"
