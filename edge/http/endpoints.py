"""The two endpoints that accept events (protocol, section 4); the contract's section 2, point 1, fixes the order of the checks."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from broker.traces import NoTraces, Traces
from edge.delivery.outcomes import OutcomeReporter
from edge.delivery.publisher import EventPublisher
from edge.http import responses
from edge.http.authentication import authenticate
from edge.http.body import BodyReader, SlowBody
from edge.http.inflate import inflate, inflate_small, is_small
from edge.http.request_headers import RequestHeaders, named_sdk, read_headers
from edge.limits.body_budget import BodyBudget
from edge.limits.local_window import RateLimiter
from edge.limits.refusal_throttle import RefusalThrottle
from edge.limits.scheduler import LARGE, SMALL, FairScheduler, TimeSlice
from edge.metrics import EdgeMetrics
from edge.project_snapshot import ProjectSnapshot
from edge.request_errors import RequestError
from edge.unknown_fields import UnknownFieldSampler
from edge.validation.validate import (
    LENIENT,
    STRICT,
    InvalidEvents,
    ValidatedBody,
    ValidationRules,
    validate_batch,
    validate_single,
)
from schemas.errors import Detail, RejectedEvent, WireError
from schemas.issues import Refusal
from schemas.limits import Limit
from schemas.projects import Project

_OUTCOMES: Final[dict[WireError, Refusal]] = {
    WireError.VALIDATION_FAILED: "invalid",
    WireError.PAYLOAD_TOO_LARGE: "tooLarge",
    WireError.RATE_LIMITED: "rateLimited",
}
_LIMIT_REASONS: Final = {limit.sentence: limit.title for limit in Limit}
_SCHEMA: Final = "schema"
_POSITION: Final = re.compile(r"\[\d+\]")
_CAUSES: Final = re.compile(r"(?:\.cause)+")
_OWN_KEYS: Final = re.compile(r"^(tags|user\.linkHashes|breadcrumbs\.data)\..*", re.DOTALL)

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
    unknown_fields: UnknownFieldSampler
    traces: Traces = NoTraces()

    async def single(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events. Raises RequestError or SlowBody."""
        await self._ingest(request, validate_single)
        return responses.accepted()

    async def batch(self, request: web.BaseRequest) -> web.Response:
        """POST /v1/events:batch. Raises RequestError or SlowBody."""
        return responses.batch(*await self._ingest(request, validate_batch))

    async def _ingest(self, request: web.BaseRequest, validate: Validate) -> tuple[int, list[RejectedEvent]]:
        """Store the valid events of a request; the number of accepted events, and the rejected ones."""
        began_ns = time.time_ns()
        token, project = await self._authenticate(request)
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
                        reason = _reason(error.details)
                        raise RequestError(WireError.VALIDATION_FAILED, reason, error.details) from None
                    accepted = len(events)
                    if events:
                        self.unknown_fields.look(project.id, head.sdk, events[0][1])
                    chunks = self.publisher.put(project, head.sdk, events)
                    traced = self.traces.chosen(
                        bytes.fromhex(number.replace("-", "")) for number, _ in events
                    )
                # Free the text while Kafka is awaited: the next body reuses the memory while it is still in the CPU cache.
                del body, events
                await self.publisher.wait_stored(chunks)
        except RequestError as error:
            self._count_refusal(project, request, error)
            await self._slow_down(request, token, error)
            raise
        self.traces.record("accept", traced, began_ns, project=project.id, sdk=head.sdk)
        if accepted:
            self.metrics.count(project.id, head.sdk, "accepted", "", accepted)
        for event in rejected:
            self._count(project.id, head.sdk, "invalid", _reason(event.details), event.details)
        return accepted, rejected

    async def _authenticate(self, request: web.BaseRequest) -> tuple[str, Project]:
        try:
            return authenticate(request.headers.get("Authorization"), self.projects)
        except RequestError as error:
            outcome = "unauthorized" if error.error is WireError.UNAUTHORIZED else "unavailable"
            self.metrics.count("", named_sdk(request.headers), outcome, error.reason)
            await self._slow_down(request, "", error)
            raise

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
        """Wait for a time slice, then inflate. While it waits, a large body stays compressed: inflated it takes 8 to 1,000 times as much."""
        body = None
        if is_small(data, head.gzip):
            await time_slice.begin(SMALL)
            body = inflate_small(data) if head.gzip else data
        if body is None:
            await time_slice.begin(LARGE)
            body = inflate(data) if head.gzip else data
        self.metrics.body_bytes.inc(len(body))
        return body

    def _count_refusal(self, project: Project, request: web.BaseRequest, error: RequestError) -> None:
        sdk = named_sdk(request.headers)
        outcome = _OUTCOMES.get(error.error)
        if outcome is None:
            self.metrics.count(project.id, sdk, "unavailable", error.reason)
        else:
            self._count(project.id, sdk, outcome, error.reason, error.details or ())

    def _count(
        self, project: str, sdk: str, outcome: Refusal, reason: str, details: Sequence[Detail] = ()
    ) -> None:
        self.metrics.count(project, sdk, outcome, reason)
        named = f"{reason}: {field_of(details[0])}" if reason == _SCHEMA and details else reason
        self.outcomes.count(project, sdk, outcome, named)


def _reason(details: list[Detail]) -> str:
    """The label under which invalid events are counted: the name of the exceeded limit, or the part that is invalid."""
    for detail in details:
        if detail.message in _LIMIT_REASONS:
            return _LIMIT_REASONS[detail.message]
    return details[0].field if details[0].field in {"body", "events"} else _SCHEMA


def field_of(detail: Detail) -> str:
    """The field of a violation without positions, keys that clients choose, and the depth of a cause: few different ones."""
    path = _CAUSES.sub(".cause", _POSITION.sub("", detail.field))
    return _OWN_KEYS.sub(r"\1", path)
