"""The outcomes of events: counts, warnings, the `on_rejected` callback, and removal from the queue on disk."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from svc.answers import Answer, Fate
from svc.notices import Notices
from svc.spool import EventSpool

OnRejected = Callable[[list[dict[str, Any]]], None]


class Outcomes:
    """Records outcomes. `counts` has sent, rejected, retries, and dropped by reason."""

    def __init__(
        self, counts: Counter[str], notices: Notices, spool: EventSpool | None, on_rejected: OnRejected | None
    ) -> None:
        self._counts = counts
        self._notices = notices
        self._spool = spool
        self._on_rejected = on_rejected

    def retry(self) -> None:
        """Count a retry of a batch."""
        self._counts["retries"] += 1

    def drop(self, reason: str, events: int) -> None:
        """Count events dropped for `reason`."""
        self._counts[f"dropped.{reason}"] += events
        if reason == "queueFull":
            self._notices.once("queueFull", "events are dropped: the queue is full")

    def fail(self, reason: str, error: Exception, events: int) -> None:
        """Count events lost to an error in the library or in the application's callbacks."""
        self._notices.once(reason, "events are lost: %r", error)
        self.drop(reason, events)

    def settle(self, fate: Fate, answer: Answer, ids: Sequence[str]) -> None:
        """Record the final outcome of a batch. An abandoned batch stays on disk for the next start."""
        if fate is Fate.DONE:
            self._counts["sent"] += answer.accepted
            self._rejected(answer, ids)
        elif fate is Fate.REFUSED:
            self.drop("refused", len(ids))
            self._notices.once(
                f"status {answer.status}", "the server refused a batch: %s %s", answer.status, answer.why
            )
        else:
            self.drop("givenUp", len(ids))
            why = answer.why or f"status {answer.status}"
            self._notices.once("givenUp", "events are lost: the server cannot be reached (%s)", why)
        if self._spool is not None and fate is not Fate.GIVEN_UP:
            self._spool.remove(ids)

    def _rejected(self, answer: Answer, ids: Sequence[str]) -> None:
        if not answer.errors:
            return
        self._counts["rejected"] += len(ids) - answer.accepted
        rejected = [{"id": ids[error["index"]], **error} for error in answer.errors]
        self._notices.once("rejected", "the server rejected events, the first of them: %s", rejected[0])
        if self._on_rejected is not None:
            try:
                self._on_rejected(rejected)
            except Exception as error:
                self._notices.once("on_rejected", "on_rejected raised %r", error)
