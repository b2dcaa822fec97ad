"""Which way words are looked for. The index on messages knows the words of all projects: for most of them reading their own messages is cheaper."""

from collections.abc import Callable
from typing import Final

from storage.query.parameters import Sql
from storage.reader.errors import ReadError
from storage.reader.execute import Executor
from storage.reader.ranges import DAY_MS

READ_MESSAGES: Final[dict[str, str | int]] = {"ignore_data_skipping_indices": "by_word"}
"""The setting of a statement that looks for words in the messages themselves."""
LARGE: Final = 0.5
"""Share of all events from which on a project's messages take longer to read than the index's dictionaries."""
_KEPT_MS: Final = 3_600_000
_COUNTED: Final = (
    "SELECT project_id, sum(n) / sum(sum(n)) OVER () AS share FROM project_hour"
    " WHERE hour >= fromUnixTimestamp64Milli({since:Int64}) GROUP BY project_id ORDER BY share DESC LIMIT 100"
)


class Shares:
    """Each project's part of all events of the last week, as it was within the last hour."""

    def __init__(self, executor: Executor, now_ms: Callable[[], int]) -> None:
        self._executor = executor
        self._now_ms = now_ms
        self._large: frozenset[int] = frozenset()
        self._until = -1

    async def is_large(self, project: int) -> bool:
        """Whether the project has so many of all events that the index on messages is the faster way."""
        now_ms = self._now_ms()
        if now_ms >= self._until:
            self._until = now_ms + _KEPT_MS
            try:
                rows = await self._executor.rows(Sql(_COUNTED, {"since": now_ms - 7 * DAY_MS}))
            except ReadError:
                self._until = -1
                raise
            self._large = frozenset(int(number) for number, share in rows if share >= LARGE)
        return project in self._large
