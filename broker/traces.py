"""Traces of single events, for an OpenTelemetry collector, where one is named.

The id of an event is the id of its trace. So no stage needs to learn anything from another, and a trace
continues through Kafka's records, the spool and dead letters, and in any version that reads them. `svc trace
ID` and the collector know an event by one name. The events' ids decide which are traced, equally in each
stage.
"""

import hashlib
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, Literal, Protocol

from schemas.errors import BadSetting
from schemas.settings import KafkaSettings

Stage = Literal["accept", "group", "store"]
_MISSING: Final = "SVC_TRACES_URL needs the extra `traces`: pip install 'svc-service[traces]'"
_SEND_SECONDS: Final = 2
"""A process that stops waits for it."""
_RANDOM_BYTES: Final = 7
"""The last bytes of an id, which are random in each kind of UUID."""


class Traces(Protocol):
    """Where spans go."""

    def chosen(self, ids: Iterable[bytes]) -> list[bytes]:
        """Those of these ids whose events are traced."""

    def record(self, stage: Stage, ids: Iterable[bytes], began_ns: int, **attributes: str | int) -> None:
        """A span of each chosen event, from Unix ns `began_ns` to now.

        The first stage is the parent of the others.
        """

    def close(self) -> None:
        """Send what is left. Blocks for some seconds where the collector doesn't answer."""


class NoTraces:
    """None are wanted."""

    def chosen(self, _: Iterable[bytes]) -> list[bytes]:
        return []

    def record(self, stage: Stage, ids: Iterable[bytes], began_ns: int, **attributes: str | int) -> None:
        pass

    def close(self) -> None:
        pass


def check_traces(settings: KafkaSettings) -> None:
    """Raise BadSetting where traces are wanted and the packages are missing."""
    if settings.traces_url:
        try:
            for package in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
                import_module(package)
        except ImportError:
            raise BadSetting(_MISSING) from None


def open_traces(settings: KafkaSettings, process: str) -> Traces:
    """Where a process sends its spans."""
    if not settings.traces_url:
        return NoTraces()
    return CollectedTraces(settings.traces_url, settings.traces_share, process)


class CollectedTraces:
    """Spans that a thread sends; a collector that is down costs the spans, and nothing else."""

    def __init__(self, url: str, share: float, process: str) -> None:
        # An extra, which few need.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk import trace as sdk
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanContext, TraceFlags

        self._span, self._context = sdk.ReadableSpan, SpanContext
        self._sampled = TraceFlags(TraceFlags.SAMPLED)
        self._resource = Resource.create({"service.name": f"svc-{process}"})
        self._sending = BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=_SEND_SECONDS))
        self._below = int(share * (1 << 8 * _RANDOM_BYTES))

    def chosen(self, ids: Iterable[bytes]) -> list[bytes]:
        return [number for number in ids if int.from_bytes(number[-_RANDOM_BYTES:]) < self._below]

    def record(self, stage: Stage, ids: Iterable[bytes], began_ns: int, **attributes: str | int) -> None:
        ended_ns = time.time_ns()
        for number in self.chosen(ids):
            root = self._context_of(number, b"accept")
            # Who repeats a stage adds a span: it happened twice.
            own = root if stage == "accept" else self._context_of(number, f"{stage} {ended_ns}".encode())
            self._sending.on_end(
                self._span(
                    name=stage,
                    context=own,
                    parent=None if own is root else root,
                    resource=self._resource,
                    attributes=attributes,
                    start_time=began_ns,
                    end_time=ended_ns,
                )
            )

    def _context_of(self, number: bytes, name: bytes) -> Any:
        digest = hashlib.blake2b(name, key=number, digest_size=8).digest()
        return self._context(
            int.from_bytes(number), int.from_bytes(digest) or 1, is_remote=False, trace_flags=self._sampled
        )

    def close(self) -> None:
        self._sending.shutdown()
