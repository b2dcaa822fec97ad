"""The outcomes of events: counts, warnings, the `on_rejected` callback, and removal from the queue on disk."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from svc.answers import Answer, Fate
from svc.notices import Notices
from svc.spool import EventSpool

OnRejected = Callable[[list[dict[str, Any]]], None]


class Outcomes:
    """Records outcomes. `counts` has sent, rejected, retries, and dropped by reason; warnings name the `server`."""

    def __init__(
        self,
        counts: Counter[str],
        notices: Notices,
        server: str,
        spool: EventSpool | None,
        on_rejected: OnRejected | None,
    ) -> None:
        self._counts = counts
        self._notices = notices
        self._server = server
        self._spool = spool
        self._on_rejected = on_rejected
        self._last_failure = "there was no time to send them"

    def retry(self, answer: Answer) -> None:
        """Count a retry of a batch after this answer."""
        self._counts["retries"] += 1
        self._last_failure = self._reason(answer)

    def abandon(self, events: int) -> None:
        """Count the events left when the program ends, and log the reason: the counts end with the program."""
        self.drop("closed", events)
        fate = "are lost" if self._spool is None else "wait on disk for the next start"
        self._notices.once("givenUp", "%d events %s: %s", events, fate, self._last_failure)

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
            self._notices.once(f"status {answer.status}", "events are lost: %s", self._reason(answer))
        else:
            self.drop("givenUp", len(ids))
            self._notices.once("givenUp", "events are lost: %s", self._reason(answer))
        if self._spool is not None and fate is not Fate.GIVEN_UP:
            self._spool.remove(ids)

    def _reason(self, answer: Answer) -> str:
        """The reason why a batch was not taken, with a hint."""
        server = self._server
        match answer.status:
            case 0:
                return f"{server} gave no answer of an ingest address ({answer.why}); check SVC_INGEST_URL"
            case 401:
                return f"{server} does not know the token; check SVC_TOKEN and SVC_INGEST_URL"
            case 404 | 405:
                return f"{server} is no ingest address (status {answer.status}); check SVC_INGEST_URL"
            case status:
                return f"{server} answered with status {status} {answer.why}".rstrip()

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
