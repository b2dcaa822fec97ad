"""What readyz says of the way to Kafka. Pure: state in, a part out."""

from datetime import UTC, datetime

from broker.send_errors import SendErrorKind
from edge.delivery.kafka_sink import Failure
from schemas.health import Part


def delivery_part(
    failure: Failure | None, *, tried: bool, has_delivered: bool, spool_full: bool, spool_bytes: int
) -> Part:
    """The part `delivery`. An edge that spools stays ready: it keeps its promise, and its clients have no better place.

    Not ready: before Kafka was tried; with a full spool; and with an error of credentials or rights in a process that has never
    delivered, so that a rollout with wrong ones stops before it has replaced the processes that still deliver.
    """
    if not tried:
        return Part(False, "connecting to Kafka")
    if failure is None:
        return Part(True)
    why = _why(failure)
    if spool_full:
        return Part(False, f"Kafka takes no events and the spool is full: {why}")
    if failure.kind is SendErrorKind.DENIED and not has_delivered:
        return Part(False, f"Kafka denies access and has taken nothing yet from this process: {why}")
    denied = "denies access" if failure.kind is SendErrorKind.DENIED else "takes no events"
    return Part(True, f"Kafka {denied}: {why}; {spool_bytes} bytes in the spool")


def outcomes_part(failure: Failure | None) -> Part:
    """The part `outcomes`, counts of what was refused: never a reason to take the edge away from its clients."""
    return Part(True, f"Kafka takes no outcomes: {_why(failure)}" if failure else "")


def _why(failure: Failure) -> str:
    return f"{failure.detail}, since {_moment(failure.since)}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
