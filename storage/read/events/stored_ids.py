"""Which event ids are stored: the processors ask before they take an old id for a new one."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from clickhouse_connect.driver.external import ExternalData

from schemas.health import Health
from storage.clickhouse_diagnosis import FailureKind, diagnose
from storage.client import ClickHouseError, Client, open_client
from storage.shards import Shard
from storage.tables.erased import ERASED_AMONG

log = logging.getLogger(__name__)
Key = tuple[int, bytes]
"""A project and a 16-byte id."""
AT_ONCE: Final = 10_000
"""Ids of one statement. It reads the ids of whole projects from about a thousand on, whatever their
number."""
FEWEST: Final = 100
"""Ids of a statement after others have failed."""
PART: Final = "old ids"
WANTED: Final = np.dtype([("id", "V16"), ("project_id", "<u4")])
STRUCTURE: Final = "id UInt128, project_id UInt32"
STORED: Final = """
    SELECT project_id, id FROM events
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
_SETTINGS: Final = {"max_threads": 2, "max_execution_time": 25}
_ANSWER_SECONDS: Final = 30
_PAUSES: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


def stored(client: Client, ids: Sequence[Key]) -> set[Key]:
    """Those of these ids whose event is in `events`, or was and is erased. Raises ClickHouseError."""
    wanted = np.empty(len(ids), WANTED)
    # A UInt128 is little-endian.
    wanted["id"] = np.frombuffer(b"".join(number[::-1] for _, number in ids), "V16")
    wanted["project_id"] = [project for project, _ in ids]
    found: set[Key] = set()
    for sql in (STORED, ERASED_AMONG):
        external = ExternalData(
            file_name="wanted", data=wanted.tobytes(), fmt="RowBinary", structure=STRUCTURE
        )
        rows = client.query(sql, external_data=external, settings=_SETTINGS).result_rows
        found |= {(int(row[0]), int(row[1]).to_bytes(16, "big")) for row in rows}
    return found.intersection(ids)


class StoredIds:
    """Looks ids up in separate threads, and waits while ClickHouse is away.

    An answer must not be guessed.
    """

    def __init__(self, shards: Sequence[Shard], health: Health) -> None:
        self._shards = [(shard, _ShardIds(shard, health)) for shard in shards]

    async def among(self, ids: Mapping[int, Collection[Key]]) -> set[Key]:
        """As `stored`, of ids by the partition of their record. May be cancelled.

        Each server is asked for the ids that it would have.
        """
        wanted = [
            (look_up, [key for partition in shard.partitions_owned(ids) for key in ids[partition]])
            for shard, look_up in self._shards
        ]
        answers = await asyncio.gather(*(look_up.among(keys) for look_up, keys in wanted if keys))
        return set().union(*answers)


class _ShardIds:
    def __init__(self, shard: Shard, health: Health) -> None:
        self._url = shard.url
        self._part = shard.named(PART)
        self._health = health
        self._client: Client | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="stored-ids")
        health.set(self._part, ok=True)

    async def among(self, ids: Collection[Key]) -> set[Key]:
        """In statements of `AT_ONCE` ids at most. Raises ClickHouseError if they are wrong."""
        wanted, found = list(dict.fromkeys(ids)), set[Key]()
        size, tries = AT_ONCE, 0
        try:
            while wanted:
                batch = wanted[:size]
                try:
                    loop = asyncio.get_running_loop()
                    found |= await loop.run_in_executor(self._thread, self._ask, batch)
                except ClickHouseError as error:
                    failure = diagnose(error)
                    if failure.kind is FailureKind.WRONG:
                        raise
                    # In case that it took too long: few ids are found by an index.
                    size = max(FEWEST, size // 2)
                    await self._wait(len(wanted), failure.sentence, tries)
                    tries += 1
                else:
                    del wanted[: len(batch)]
                    tries = 0
        finally:
            self._health.set(self._part, ok=True)
        return found

    async def _wait(self, count: int, sentence: str, tries: int) -> None:
        self._health.set(self._part, ok=False, detail=f"{count} wait to be looked up: {sentence}")
        log.warning(
            "can't look up %d old ids, retrying: %s",
            count,
            sentence,
            extra={"event": "old_id_lookup_failed", "tries": tries + 1},
        )
        await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])

    def _ask(self, ids: Sequence[Key]) -> set[Key]:
        if self._client is None:
            self._client = open_client(self._url, send_receive_timeout=_ANSWER_SECONDS)
        try:
            return stored(self._client, ids)
        except (ClickHouseError, OSError) as error:
            self._client.close()
            self._client = None
            if isinstance(error, OSError):
                raise ClickHouseError(str(error)) from error
            raise
