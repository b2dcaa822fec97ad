"""How far the pipeline is behind."""

from msgspec import Struct

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.dependencies import lag_of
from schemas.times import iso


class BehindView(Struct, frozen=True, rename="camel"):
    """How far the pipeline is behind.

    Events that arrived since `completeUntil`, in the last `seconds`, may not be stored yet. `records` of
    Kafka wait, each with one or many events.
    """

    complete_until: str
    seconds: int
    records: int


class PipelineState(Struct, frozen=True):
    """`behind` is null in a steady flow, and while Kafka doesn't answer, which makes `known` false."""

    known: bool
    behind: BehindView | None


@operation("GET", "/pipeline", Role.NONE)
async def _get(call: Call[NoInput, NoInput]) -> PipelineState:
    """Whether accepted events wait to be stored, and until when all are."""
    lag, now_ms = lag_of(call.state), call.state.dependencies.now_ms()
    if lag.behind is None:
        return PipelineState(lag.is_known, None)
    until = lag.behind.until_ms
    return PipelineState(
        lag.is_known, BehindView(iso(until), max(0, now_ms - until) // 1_000, lag.behind.records)
    )


OPERATIONS = (_get,)
