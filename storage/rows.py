"""Events to columns: what `ingest` takes, gathered column by column and handed over as one Arrow table. Pure: no I/O, no clock."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from schemas.chunks import ChunkEvent, Grouping
from schemas.ids import user_hash
from schemas.payload import decompress
from schemas.times import NEWEST, OLDEST
from storage.extract import extract

COLUMNS: Final = (
    "project_id", "fingerprint", "ts", "id", "received", "release", "environment", "platform", "kind", "os", "os_version",
    "model", "locale", "sdk", "user_id", "user_hash", "error_type", "message", "files", "functions", "tags",
    "grouping_version", "grouping_rule", "retention_days", "payload_days", "payload",
)  # fmt: skip
"""Columns of the table `ingest`, in its order."""
PAYLOAD_COLUMNS: Final = ("project_id", "id", "ts", "payload", "payload_days")
"""Columns of the table `payloads`; `events` has all of `COLUMNS` but the last two."""
EVENT_COLUMNS: Final = COLUMNS[:-2]

_OLDEST_MS: Final = int(OLDEST.total_seconds() * 1000)
_NEWEST_MS: Final = int(NEWEST.total_seconds() * 1000)
_TEXTS: Final = (
    "release", "environment", "platform", "kind", "os", "os_version", "model", "locale", "sdk", "user_id", "error_type",
    "message", "grouping_version", "grouping_rule",
)  # fmt: skip
_FIRST_TEXT: Final = 9
_ID_BYTES: Final = 16
_CACHED_USERS: Final = 16_384

_hash_of = lru_cache(_CACHED_USERS)(user_hash)


class EventColumns:
    """Columns of a block that grows event by event. `size` is the bytes of its payloads."""

    def __init__(self) -> None:
        self.size = 0
        self._rows: list[tuple[Any, ...]] = []
        self._files = _Lists()
        self._functions = _Lists()
        self._tags = _Maps()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, event: ChunkEvent, grouping: Grouping, retention_days: int, payload_days: int) -> None:
        """One more row. Raises BadPayload and Unreadable, with the block as it was."""
        found = extract(decompress(event.payload))
        files, functions = found.places()
        device, user, error = found.device, found.user, found.error
        user_id = user.id if user is not None else None
        # One tuple a row, turned into columns at the end: an append a column costs more than the turning.
        self._rows.append(
            (
                event.project,
                grouping.fingerprint,
                found.timestamp.timestamp(),
                event.id,
                event.received_ms,
                _hash_of(event.project, user_id) if user_id else 0,
                retention_days,
                payload_days,
                event.payload,
                found.release,
                found.environment,
                found.platform,
                found.kind,
                device.os,
                device.osVersion,
                device.model or "",
                device.locale or "",
                event.sdk,
                user_id or "",
                error.type,
                error.message,
                grouping.version,
                grouping.rule,
            )
        )
        self.size += len(event.payload)
        self._files.add(files)
        self._functions.add(functions)
        self._tags.add(found.tags)

    def table(self) -> pa.Table:
        """All rows, with the columns of `COLUMNS`."""
        columns = list(zip(*self._rows, strict=True)) or [()] * (_FIRST_TEXT + len(_TEXTS))
        projects, fingerprints, timestamps, ids, received_ms, hashes, days, payload_days, payloads = columns[
            :_FIRST_TEXT
        ]
        received = np.array(received_ms, "i8")
        arrays: dict[str, Any] = {
            "project_id": pa.array(np.array(projects, "u4")),
            "fingerprint": pa.array(np.array(fingerprints, "u8")),
            "ts": _moments(event_times(np.array(timestamps, "f8"), received)),
            "id": uint128(ids),
            "received": _moments(received),
            "user_hash": pa.array(np.array(hashes, "u8")),
            "files": self._files.array(),
            "functions": self._functions.array(),
            "tags": self._tags.array(),
            "retention_days": pa.array(np.array(days, "u2")),
            "payload_days": pa.array(np.array(payload_days, "u2")),
            "payload": joined(payloads),
        }
        texts = zip(_TEXTS, columns[_FIRST_TEXT:], strict=True)
        arrays |= {name: pa.array(values, pa.string()) for name, values in texts}
        return pa.table([arrays[name] for name in COLUMNS], names=list(COLUMNS))


def event_times(
    timestamps: "np.ndarray[Any, Any]", received: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    """`schemas.times.event_time` of a whole column: seconds as floats and Unix ms to Unix ms."""
    # A float of seconds is exact to the microsecond once rounded to it; cutting to milliseconds comes after.
    sent = np.rint(timestamps * 1e6).astype("i8") // 1000
    trusted = (sent >= received - _OLDEST_MS) & (sent <= received + _NEWEST_MS)
    return np.where(trusted, sent, received)


def uint128(ids: Sequence[bytes]) -> pa.Array:
    """Sixteen-byte ids as ClickHouse's UInt128: their big-endian value, in little-endian bytes."""
    turned = np.frombuffer(b"".join(ids), "u1").reshape(-1, _ID_BYTES)[:, ::-1].tobytes()
    return pa.Array.from_buffers(pa.binary(_ID_BYTES), len(ids), [None, pa.py_buffer(turned)])


def joined(values: Sequence[bytes]) -> pa.Array:
    """Byte strings as one column by a single join: growing an Arrow buffer costs several times as much."""
    offsets = np.zeros(len(values) + 1, "i8")
    np.cumsum(np.fromiter(map(len, values), "i8", len(values)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.astype("i4").tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _moments(ms: "np.ndarray[Any, Any]") -> pa.Array:
    return pa.array(ms.astype("datetime64[ms]"))


class _Lists:
    """A column of lists of strings."""

    def __init__(self) -> None:
        self._offsets = [0]
        self._values: list[str] = []

    def add(self, values: tuple[str, ...]) -> None:
        self._values.extend(values)
        self._offsets.append(len(self._values))

    def array(self) -> pa.Array:
        return pa.ListArray.from_arrays(
            pa.array(self._offsets, pa.int32()), pa.array(self._values, pa.string())
        )


class _Maps:
    """A column of maps from string to string."""

    def __init__(self) -> None:
        self._offsets = [0]
        self._keys: list[str] = []
        self._values: list[str] = []

    def add(self, pairs: dict[str, str] | None) -> None:
        if pairs:
            self._keys.extend(pairs)
            self._values.extend(pairs.values())
        self._offsets.append(len(self._keys))

    def array(self) -> pa.Array:
        return pa.MapArray.from_arrays(
            pa.array(self._offsets, pa.int32()),
            pa.array(self._keys, pa.string()),
            pa.array(self._values, pa.string()),
        )
