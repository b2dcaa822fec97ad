"""Queries and ranges that the read calls are asked with, and all pages of a list."""

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from schemas.times import DAY_MS, HOUR_MS
from storage.read.query.ranges import resolve_range
from storage.read.reader import Reader
from tests.integration.storage.read.world import NOW_MS

QUERIES = [
    "",
    "is:open",
    "-is:open",
    "is:[regressed, assigned] events:>10",
    "is:[new, escalating]",
    "is:ongoing -is:escalating",
    "firstSeen:<-10d",
    "environment:prod",
    "-environment:prod release:shop@1.[1]* OR release:shop@1.2*",
    "environment:staging OR is:resolved",
    "feature:checkout",
    "feature:[cart, search] -is:ignored",
    '"it\'s"',
    'tags["it\'s"]:"a=b"',
    "GRÖSSE OR größe",
    "item*100%",
    "typeerror -user:u3 has:user",
    "user:u3",
    "timestamp:>-2d",
    "file:src/1* OR function:f2",
    "-has:model is:open OR feature:cart",
    "nothing-like-this",
]
RANGES: list[tuple[int | None, int | None]] = [
    (None, None),
    (NOW_MS - 9 * DAY_MS - 12_345, NOW_MS - HOUR_MS - 1),
    (NOW_MS - 20 * HOUR_MS, NOW_MS),
    (NOW_MS - 30 * 60_000, None),
    (NOW_MS // DAY_MS * DAY_MS - 3 * DAY_MS, NOW_MS // DAY_MS * DAY_MS),
    (NOW_MS // HOUR_MS * HOUR_MS - 7 * HOUR_MS + 5, NOW_MS // HOUR_MS * HOUR_MS - 7 * HOUR_MS + 60_000),
    (None, NOW_MS - 2 * DAY_MS),
]


async def pages(reader: Reader, call: Any) -> AsyncIterator[Any]:
    """Every page of a list, each read once the one before it has been looked at."""
    page = await reader.read(call)
    yield page
    while page.next_cursor is not None:
        page = await reader.read(replace(call, cursor=page.next_cursor))
        yield page


def bounds(start: int | None, end: int | None) -> tuple[int, int | None]:
    span = resolve_range(start, end, NOW_MS)
    return span.start, span.end
