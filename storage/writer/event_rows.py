"""Events to columns: what `ingest` takes, gathered event by event and turned into one Arrow table. Pure: no I/O, no clock."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from query.event_fields import DeviceFields, Packed, extract
from schemas.chunks import ChunkEvent, Grouping
from schemas.ids import user_hash
from schemas.payload import decompress
from schemas.times import NEWEST, OLDEST

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
_ID_BYTES: Final = 16
_CACHED_USERS: Final = 16_384

_FEW: Final = (
    "device", "release", "environment", "platform", "kind", "sdk", "error_type", "grouping_version", "grouping_rule",
)  # fmt: skip
_ROW: Final = 10 + len(_FEW)
_NO_TAGS: Final[dict[str, str]] = {}

_hash_of = lru_cache(_CACHED_USERS)(user_hash)


class EventColumns:
    """Columns of a block that grows event by event. `size` is the bytes of its payloads."""

    def __init__(self) -> None:
        self.size = 0
        self._fields: list[Any] = []
        self._few = {name: _Codes() for name in _FEW}
        self._devices: dict[int, DeviceFields] = {}

    def __len__(self) -> int:
        return len(self._fields) // _ROW

    def add(self, event: ChunkEvent, grouping: Grouping, retention_days: int, payload_days: int) -> None:
        """One more row. Raises BadPayload and Unreadable, with the block as it was."""
        found = extract(decompress(event.payload))
        user, error, device, few = found.user, found.error, found.device, self._few
        user_id = (user.id or "") if user is not None else ""
        # Kept alive, so that no other gets its id.
        self._devices[id(device)] = device
        # One list of all rows, cut into columns at the end: no object a row for the garbage collector to visit. What is kept must
        # not hold on to the event's bytes, as `found` does.
        self._fields.extend(
            (
                event,
                grouping.fingerprint,
                found.timestamp.timestamp(),
                _hash_of(event.project, user_id) if user_id else 0,
                retention_days,
                payload_days,
                user_id,
                error.message,
                found.places(),
                found.tags or _NO_TAGS,
                few["device"][id(device)],
                few["release"][found.release],
                few["environment"][found.environment],
                few["platform"][found.platform],
                few["kind"][found.kind],
                few["sdk"][event.sdk],
                few["error_type"][error.type],
                few["grouping_version"][grouping.version],
                few["grouping_rule"][grouping.rule],
            )
        )
        self.size += len(event.payload)

    def table(self) -> pa.Table:
        """All rows, with the columns of `COLUMNS`; what has few values is encoded as a dictionary."""
        columns = [self._fields[first::_ROW] for first in range(_ROW)]
        events, fingerprints, moments, hashes, days, payload_days, users, messages, places, tags, *few = (
            columns
        )
        received = np.array([event.received_ms for event in events], "i8")
        codes = {name: np.array(found, "i4") for name, found in zip(_FEW, few, strict=True)}
        arrays = {
            "project_id": pa.array(np.array([event.project for event in events], "u4")),
            "fingerprint": pa.array(np.array(fingerprints, "u8")),
            "ts": _moments(event_times(np.array(moments, "f8"), received)),
            "id": uint128([event.id for event in events]),
            "received": _moments(received),
            "user_id": texts(users),
            "user_hash": pa.array(np.array(hashes, "u8")),
            "message": texts(messages),
            "files": _lists([one.packed_files for one in places]),
            "functions": _lists([one.packed_functions for one in places]),
            "tags": _maps(tags),
            "retention_days": pa.array(np.array(days, "u2")),
            "payload_days": pa.array(np.array(payload_days, "u2")),
            "payload": joined([event.payload for event in events]),
            **_device_columns([self._devices[one] for one in self._few["device"]], codes.pop("device")),
        }
        arrays |= {name: encoded(found, list(self._few[name])) for name, found in codes.items()}
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
    return _strings(_lengths(values), b"".join(values), pa.binary())


def texts(values: Sequence[str]) -> pa.Array:
    """Strings as one column, in the same way."""
    whole = "".join(values)
    encoded = whole.encode()
    if len(encoded) == len(whole):
        return _strings(_lengths(values), encoded, pa.string())
    return pa.array(values, pa.string())


def encoded(codes: "np.ndarray[Any, Any]", values: Sequence[str]) -> pa.DictionaryArray:
    """Strings of which many are equal as one column: each distinct one once, and its number a row."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))


def _device_columns(devices: Sequence[DeviceFields], codes: "np.ndarray[Any, Any]") -> dict[str, pa.Array]:
    columns = {
        "os": [one.os for one in devices],
        "os_version": [one.osVersion for one in devices],
        "model": [one.model or "" for one in devices],
        "locale": [one.locale or "" for one in devices],
    }
    found = {}
    for name, values in columns.items():
        distinct = _Codes()
        of_device = np.array([distinct[value] for value in values], "i4")
        found[name] = encoded(of_device[codes], list(distinct))
    return found


class _Codes(dict[Any, int]):
    """Numbers its keys in the order in which they are first asked for."""

    def __missing__(self, key: Any) -> int:
        self[key] = code = len(self)
        return code


def _strings(lengths: "np.ndarray[Any, Any]", whole: bytes, kind: pa.DataType) -> pa.Array:
    buffers = [None, pa.py_buffer(_offsets(lengths)), pa.py_buffer(whole)]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def _lengths(values: Sequence[Any]) -> "np.ndarray[Any, Any]":
    return np.fromiter(map(len, values), "i4", len(values))


def _offsets(lengths: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    offsets = np.zeros(len(lengths) + 1, "i4")
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _moments(ms: "np.ndarray[Any, Any]") -> pa.Array:
    return pa.array(ms.astype("datetime64[ms]"))


def _lists(values: Sequence[Packed]) -> pa.ListArray:
    lengths = np.frombuffer(b"".join([one.lengths for one in values]), "i4")
    strings = _strings(lengths, b"".join([one.whole for one in values]), pa.string())
    counts = np.array([one.count for one in values], "i4")
    return pa.ListArray.from_arrays(pa.array(_offsets(counts)), strings)


def _maps(values: Sequence[dict[str, str]]) -> pa.MapArray:
    keys = texts(list(chain.from_iterable(values)))
    items = texts(list(chain.from_iterable(one.values() for one in values)))
    return pa.MapArray.from_arrays(pa.array(_offsets(_lengths(values))), keys, items)
