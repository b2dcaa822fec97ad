"""The end of `grouped` is read where nothing else tells the decisions of a killed owner.

It is read once everything that the owner has sent must have arrived.
"""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from broker.client import PRODUCER_TIMEOUT_SECONDS
from processors.grouper.grouped_tail import GroupedTail
from schemas.chunks import REPLAYED_HEADER, GroupedRecord, Grouping, encode_grouped
from schemas.environment import load
from schemas.settings import ProcessorsSettings

SETTINGS = load(ProcessorsSettings, {})


def record(offset: int, headers: tuple[tuple[str, bytes], ...] = ()) -> Any:
    grouping = Grouping(7, "v1", "stack", ())
    value = encode_grouped(GroupedRecord(0, offset, 1, [0], [0], [grouping], [7], {}, [0]))
    return SimpleNamespace(value=value, headers=headers, offset=offset)


class Consumer:
    """Of one partition that begins at 0."""

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.at = 0

    async def beginning_offsets(self, tps: Iterable[Any]) -> dict[Any, int]:
        return dict.fromkeys(tps, 0)

    async def end_offsets(self, tps: Iterable[Any]) -> dict[Any, int]:
        return dict.fromkeys(tps, len(self.records))

    def assign(self, _: Any) -> None:
        pass

    def seek(self, _: Any, offset: int) -> None:
        self.at = offset

    async def position(self, _: Any) -> int:
        return self.at

    async def getmany(self, tp: Any, **_: Any) -> dict[Any, list[Any]]:
        found, self.at = self.records[self.at :], len(self.records)
        return {tp: found}


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records of `grouped`; a waiting reader finds that another record has arrived."""
    found: list[Any] = []

    @asynccontextmanager
    async def open_consumer(_: Any) -> AsyncIterator[Consumer]:
        yield Consumer(found)

    async def sleep(seconds: float) -> None:
        assert PRODUCER_TIMEOUT_SECONDS - 5 < seconds <= PRODUCER_TIMEOUT_SECONDS
        found.append(record(len(found)))

    monkeypatch.setattr("processors.grouper.grouped_tail.open_consumer", open_consumer)
    monkeypatch.setattr("asyncio.sleep", sleep)
    return found


async def last(recorded: tuple[int, int] | None, assigned_at: float) -> int | None:
    boundary = await GroupedTail(SETTINGS).read(0, recorded, assigned_at)
    return None if boundary is None else boundary.last


async def test_records_of_a_killed_owner_are_read_although_they_arrive_later(records: list[Any]) -> None:
    records.append(record(0))
    assert await last(None, time.monotonic()) == 1


@pytest.mark.parametrize(
    ("published", "recorded", "ago"), [(0, None, 0), (1, (0, 0), 0), (1, None, PRODUCER_TIMEOUT_SECONDS)]
)
async def test_there_is_no_wait_where_nothing_can_be_missing(
    records: list[Any], published: int, recorded: tuple[int, int] | None, ago: float
) -> None:
    records += map(record, range(published))
    assert await last(recorded, time.monotonic() - ago) == (0 if published else None)


async def test_events_put_back_are_no_published_record(records: list[Any]) -> None:
    again = record(9, ((REPLAYED_HEADER, b"0/9/refused"),))
    again.offset = 1
    records += [record(0), again]
    assert await last(None, time.monotonic() - PRODUCER_TIMEOUT_SECONDS) == 0
