"""Whether the processors have ended in the middle of a batch is known once the writer has stored all of it."""

from unittest.mock import AsyncMock, Mock

import pytest

from broker.consumer_lag import ConsumerLag
from broker.types import TopicPartition
from rebuild.from_clickhouse import none_interrupted
from schemas.errors import RebuildRefused
from schemas.settings import ProcessorsSettings


@pytest.mark.parametrize(
    ("behind", "stored", "reason"),
    [(0, 4, None), (0, 5, "in the middle of a batch"), (2, 4, "2 records behind")],
)
async def test_nothing_is_interrupted_once_the_writer_has_stored_what_is_committed(
    monkeypatch: pytest.MonkeyPatch, behind: int, stored: int, reason: str | None
) -> None:
    lags = [ConsumerLag("svc-writer", "svc.grouped", behind)] if behind else []
    events = TopicPartition("svc.events", 0)
    for name, given in {
        "lags": AsyncMock(return_value=lags),
        "open_consumer": Mock(return_value=AsyncMock()),
        "source_ends": AsyncMock(return_value={0: stored}),
        "_deltas": AsyncMock(return_value={0: 0}),
        "_partitions": AsyncMock(return_value=[events]),
        "_commits": AsyncMock(return_value={events: (5, "")}),
    }.items():
        monkeypatch.setattr(f"rebuild.from_clickhouse.{name}", given)
    checked = none_interrupted(ProcessorsSettings(kafka_bootstrap="x:1"))
    if reason is None:
        await checked
    else:
        with pytest.raises(RebuildRefused, match=reason):
            await checked
