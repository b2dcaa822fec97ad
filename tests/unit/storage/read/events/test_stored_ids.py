"""A look-up that takes too long is made with fewer ids."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from schemas.health import Health
from storage.client import ClickHouseError
from storage.read.events import stored_ids
from storage.read.events.stored_ids import AT_ONCE, FEWEST, PART, Key, StoredIds
from storage.shards import only

IDS: list[Key] = [(7, number.to_bytes(16, "big")) for number in range(AT_ONCE + 5)]


async def test_statements_that_fail_ask_for_fewer_ids_until_one_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    health, sizes = Health(), list[int]()

    def stored(_: object, ids: Sequence[Key]) -> set[Key]:
        sizes.append(len(ids))
        if len(ids) > 10 * FEWEST:
            raise ClickHouseError("Timeout exceeded")
        return set(ids[::2])

    async def sleep(_: float) -> None:
        assert not health.parts()[PART].ok

    monkeypatch.setattr(stored_ids, "open_client", lambda *_, **__: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(stored_ids, "stored", stored)
    monkeypatch.setattr(stored_ids, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
    found = await StoredIds(only(""), health).among({0: IDS, 5: IDS[:3]})
    assert sizes[:5] == [AT_ONCE, AT_ONCE // 2, AT_ONCE // 4, AT_ONCE // 8, AT_ONCE // 16]
    assert sum(sizes[4:]) == len(IDS)
    assert {*IDS[:10:2], IDS[-1]} <= found
    assert health.parts()[PART].ok


async def test_a_look_up_that_can_never_succeed_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[int]()

    def stored(_: object, ids: Sequence[Key]) -> set[Key]:
        sizes.append(len(ids))
        raise DatabaseError("Syntax error", code=62)

    monkeypatch.setattr(stored_ids, "open_client", lambda *_, **__: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(stored_ids, "stored", stored)
    with pytest.raises(DatabaseError):
        await StoredIds(only(""), Health()).among({0: IDS})
    assert sizes == [AT_ONCE]
