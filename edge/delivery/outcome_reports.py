"""Reports refused events and requests on the topic `outcomes`.

The contract defines them in section 2, point 14. Accepted events are not counted here: the grouper counts
them exactly in the topic `events` (docs/decisions/edge.md).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from broker.errors import SinkUnavailable
from edge.delivery.sink import Sink
from edge.edge_metrics import BoundedLabel
from schemas.ids import uuid7
from schemas.issues import Outcome, OutcomeKind, encode_json
from schemas.times import MINUTE_MS, iso
from schemas.topics import Topic

log = logging.getLogger(__name__)

_FLUSH_SECONDS: Final = 5.0
_MAX_UNSENT: Final = 20_000
_CODEC_ERRORS: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Errors of msgspec for values that can't be encoded or bytes that can't be decoded."""
_Key = tuple[str, int, str, OutcomeKind, str]
"""Project, minute, SDK, outcome and reason."""
_decode_saved: Final = msgspec.json.Decoder(list[Outcome]).decode


class OutcomeReporter:
    """Counts by minute and sends the counts every few seconds; unsent ones are kept, on stop in a file."""

    def __init__(
        self,
        sink: Sink,
        saved: Path,
        now: Callable[[], float] | None = None,
        flush_seconds: float = _FLUSH_SECONDS,
    ) -> None:
        self._sink = sink
        self._saved = saved
        self._now = now or time.time
        self._flush_seconds = flush_seconds
        self._counts: Counter[_Key] = Counter()
        self._examples: dict[_Key, str] = {}
        self._shown: set[_Key] = set()
        self._unsent: list[Outcome] = []
        self._source = str(uuid7())
        self._sequence = 0
        self._sdk = BoundedLabel()

    def needs_example(self, project: str, sdk: str, outcome: OutcomeKind, reason: str) -> bool:
        """Whether the next count should bring an example: once a minute."""
        key = self._key(project, sdk, outcome, reason)
        if key in self._shown:
            return False
        self._shown.add(key)
        return True

    def count(
        self,
        project: str,
        sdk: str,
        outcome: OutcomeKind,
        reason: str,
        events: int = 1,
        example: str = "",
    ) -> None:
        """Count events, or a request that was refused as a whole; the first example of a flush is sent."""
        key = self._key(project, sdk, outcome, reason)
        self._counts[key] += events
        if example:
            self._examples.setdefault(key, example)

    def _key(self, project: str, sdk: str, outcome: OutcomeKind, reason: str) -> _Key:
        return project, int(self._now() * 1000) // MINUTE_MS, self._sdk(sdk), outcome, reason

    async def run(self) -> None:
        """Send every few seconds until cancelled."""
        self.load()
        while True:
            await asyncio.sleep(self._flush_seconds)
            await self.flush()

    async def flush(self) -> None:
        """Send the counts; records that Kafka doesn't accept are retried by the next call."""
        counts, self._counts = self._counts, Counter()
        examples, self._examples = self._examples, {}
        now = int(self._now() * 1000) // MINUTE_MS
        self._shown = {key for key in self._shown if key[1] >= now}
        for key, count in counts.items():
            project, minute, sdk, outcome, reason = key
            self._sequence += 1
            self._unsent.append(
                Outcome(
                    project_id=project,
                    minute=iso(minute * MINUTE_MS),
                    sdk=sdk,
                    outcome=outcome,
                    reason=reason,
                    count=count,
                    source=self._source,
                    sequence=self._sequence,
                    example=examples.get(key, ""),
                )
            )
        if len(self._unsent) > _MAX_UNSENT:
            log.warning(
                "dropped %d outcome records",
                len(self._unsent) - _MAX_UNSENT,
                extra={"event": "outcomes_dropped"},
            )
            del self._unsent[: len(self._unsent) - _MAX_UNSENT]
        try:
            while self._sink.up and self._unsent:
                record = self._unsent[0]
                value = _encode(record)
                if value is not None:
                    await self._sink.send(Topic.OUTCOMES, value, key=record.project_id.encode())
                self._unsent.pop(0)
        except SinkUnavailable:
            log.debug(
                "%d outcome records are waiting", len(self._unsent), extra={"event": "outcomes_delayed"}
            )

    async def stop(self) -> None:
        """Send the remaining counts, or save them in the file for the next start."""
        await self.flush()
        unsent = [value for record in self._unsent if (value := _encode(record)) is not None]
        if unsent:
            self._saved.write_bytes(b"[" + b",".join(unsent) + b"]")

    def load(self) -> None:
        """Load the counts that the last process could not send."""
        if self._saved.exists():
            try:
                self._unsent.extend(_decode_saved(self._saved.read_bytes()))
            except (*_CODEC_ERRORS, OSError) as error:
                log.warning(
                    "ignoring damaged %s: %s", self._saved, error, extra={"event": "saved_outcomes_damaged"}
                )
            self._saved.unlink()


def _encode(record: Outcome) -> bytes | None:
    """The record's JSON; None, and a log message, if it can't be encoded: one count must not cost all others."""
    try:
        return encode_json(record)
    except _CODEC_ERRORS as error:
        log.warning(
            "dropped an outcome record that can't be encoded: %s",
            error,
            extra={"event": "outcome_not_encoded"},
        )
        return None
