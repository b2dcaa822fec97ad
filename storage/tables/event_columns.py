"""Events as columns of the table `ingest`, converted to one Arrow table. Pure: no I/O, no clock.

Events are added one by one.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from query.event_fields import DeviceFields, FramePlaces, extract
from schemas.chunks import ChunkEvent, Grouping
from schemas.ids import user_hash
from schemas.times import DAY_MS, NEWEST, OLDEST
from storage.tables.packs import packed

COLUMNS: Final = (
    "project_id", "fingerprint", "ts", "id", "received", "release", "environment", "platform", "kind",
    "os", "os_version", "model", "locale", "sdk", "user_id", "user_hash", "error_type", "message", "files",
    "functions", "tags", "grouping_version", "grouping_rule", "retention_days", "payload_days", "payload", "pack",
)  # fmt: skip
"""Columns of the table `ingest`, in its order."""
PAYLOAD_COLUMNS: Final = ("project_id", "id", "ts", "payload", "payload_days", "pack")
"""Columns of the table `payloads`; `events` has all of `COLUMNS` but the last three."""
EVENT_COLUMNS: Final = COLUMNS[:-3]

_OLDEST_MS: Final = int(OLDEST.total_seconds() * 1000)
_NEWEST_MS: Final = int(NEWEST.total_seconds() * 1000)
_ID_BYTES: Final = 16
_CACHED_USERS: Final = 16_384

_ENCODED: Final = (
    "device", "places", "release", "environment", "platform", "kind", "sdk", "error_type",
    "grouping_version", "grouping_rule",
)  # fmt: skip
_ROW: Final = 10 + len(_ENCODED)
_NO_TAGS: Final[dict[str, str]] = {}

_hash_of = lru_cache(_CACHED_USERS)(user_hash)


class EventColumns:
    """Columns of a block that grows event by event. `size` is the bytes of its payloads."""

    def __init__(self) -> None:
        self.size = 0
        self._fields: list[Any] = []
        self._codes = {name: _Codes() for name in _ENCODED}
        self._devices: dict[int, DeviceFields] = {}
        self._places: dict[int, FramePlaces] = {}

    def __len__(self) -> int:
        return len(self._fields) // _ROW

    def add_row(self, event: ChunkEvent, grouping: Grouping, retention_days: int, payload_days: int) -> None:
        """Add a row. Raises Unreadable, with nothing added."""
        fields = extract(event.payload)
        user, error, codes = fields.user, fields.error, self._codes
        device, places = fields.device, fields.places()
        user_id = (user.id or "") if user is not None else ""
        # References, so that no other object gets their ids.
        self._devices[id(device)], self._places[id(places)] = device, places
        # One list of all rows, split into columns at the end: no object a row for the garbage collector to visit.
        self._fields.extend(
            (
                event,
                event.payload,
                grouping.fingerprint,
                fields.timestamp.timestamp(),
                _hash_of(event.project, user_id) if user_id else 0,
                retention_days,
                payload_days,
                user_id,
                error.message,
                fields.tags or _NO_TAGS,
                codes["device"][id(device)],
                codes["places"][id(places)],
                codes["release"][fields.release],
                codes["environment"][fields.environment],
                codes["platform"][fields.platform],
                codes["kind"][fields.kind],
                codes["sdk"][event.sdk],
                codes["error_type"][error.type],
                codes["grouping_version"][grouping.version],
                codes["grouping_rule"][grouping.rule],
            )
        )
        self.size += len(event.payload)

    def table(self) -> pa.Table:
        """All rows with their own payloads, in the order in which they were added."""
        return _with_payloads(self._table(), self._fields[1::_ROW], [bytes(_ID_BYTES)] * len(self))

    def packed(self) -> pa.Table:
        """All rows with their payloads in packs, in the order of partition, project, issue and time."""
        rows = self._table()
        days, project, fingerprint = (
            rows[name].to_numpy() for name in ("payload_days", "project_id", "fingerprint")
        )
        ms = rows["ts"].to_numpy().astype("i8")
        # 1970 began on a Thursday; a partition begins on a Monday.
        week = (ms // DAY_MS + 3) // 7
        order = np.lexsort((ms, fingerprint, project, week, days))
        groups = zip(days[order].tolist(), week[order].tolist(), project[order].tolist(), strict=True)
        events, payloads = self._fields[::_ROW], self._fields[1::_ROW]
        sorted_ids = [events[row].id for row in order.tolist()]
        sorted_payloads = [payloads[row] for row in order.tolist()]
        return _with_payloads(rows.take(pa.array(order)), *packed(sorted_ids, sorted_payloads, groups))

    def _table(self) -> pa.Table:
        """All columns but the last two; those of few distinct values are dictionary-encoded."""
        columns = [self._fields[first::_ROW] for first in range(_ROW)]
        (
            events,
            _,
            fingerprints,
            moments,
            hashes,
            days,
            payload_days,
            users,
            messages,
            tags,
            *encoded_columns,
        ) = columns
        received = np.array([event.received_ms for event in events], "i8")
        codes = {name: np.array(column, "i4") for name, column in zip(_ENCODED, encoded_columns, strict=True)}
        devices = [self._devices[device] for device in self._codes["device"]]
        places = [self._places[one] for one in self._codes["places"]]
        of_places = codes.pop("places")
        arrays = {
            "project_id": pa.array(np.array([event.project for event in events], "u4")),
            "fingerprint": pa.array(np.array(fingerprints, "u8")),
            "ts": _moments(event_times(np.array(moments, "f8"), received)),
            "id": uint128([event.id for event in events]),
            "received": _moments(received),
            "user_id": texts(users),
            "user_hash": pa.array(np.array(hashes, "u8")),
            "message": texts(messages),
            "files": _lists([one.files for one in places], of_places),
            "functions": _lists([one.functions for one in places], of_places),
            "tags": _maps(tags),
            "retention_days": pa.array(np.array(days, "u2")),
            "payload_days": pa.array(np.array(payload_days, "u2")),
            **_device_columns(devices, codes.pop("device")),
        }
        arrays |= {
            name: pa.DictionaryArray.from_arrays(pa.array(column), pa.array(self._codes[name], pa.string()))
            for name, column in codes.items()
        }
        return pa.table({name: arrays[name] for name in COLUMNS[:-2]})


def _with_payloads(rows: pa.Table, payloads: Sequence[bytes], packs: Sequence[bytes]) -> pa.Table:
    return rows.append_column("payload", joined(payloads)).append_column("pack", uint128(packs))


def event_times(
    timestamps: "np.ndarray[Any, Any]", received: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    """`schemas.times.event_time` of a whole column: seconds as floats and Unix ms to Unix ms."""
    # A float of seconds is exact to the microsecond once rounded to it; then it is truncated to milliseconds.
    sent = np.rint(timestamps * 1e6).astype("i8") // 1000
    trusted = (sent >= received - _OLDEST_MS) & (sent <= received + _NEWEST_MS)
    return np.where(trusted, sent, received)


def uint128(ids: Sequence[bytes]) -> pa.Array:
    """Sixteen-byte ids as ClickHouse's UInt128: their big-endian value, in little-endian bytes."""
    reversed_ids = np.frombuffer(b"".join(ids), "u1").reshape(-1, _ID_BYTES)[:, ::-1].tobytes()
    return pa.Array.from_buffers(pa.binary(_ID_BYTES), len(ids), [None, pa.py_buffer(reversed_ids)])


def joined(values: Sequence[bytes]) -> pa.Array:
    """Byte strings as one column by a single join: growing an Arrow buffer costs several times as much."""
    return _strings(_lengths(values), b"".join(values), pa.binary())


def texts(values: Sequence[str]) -> pa.Array:
    """Strings as one column by a single join, if they are ASCII."""
    whole = "".join(values)
    encoded = whole.encode()
    if len(encoded) == len(whole):
        return _strings(_lengths(values), encoded, pa.string())
    return pa.array(values, pa.string())


def _device_columns(devices: Sequence[DeviceFields], codes: "np.ndarray[Any, Any]") -> dict[str, pa.Array]:
    columns = {
        "os": [device.os for device in devices],
        "os_version": [device.osVersion for device in devices],
        "model": [device.model or "" for device in devices],
        "locale": [device.locale or "" for device in devices],
    }
    of_device = {name: pa.array(values, pa.string()).dictionary_encode() for name, values in columns.items()}
    return {name: values.take(pa.array(codes)) for name, values in of_device.items()}


class _Codes(dict[Any, int]):
    """Numbers its keys in the order of their first look-up."""

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


def _lists(values: Sequence[Sequence[str]], codes: "np.ndarray[Any, Any]") -> pa.ListArray:
    """A column of lists that many rows share."""
    return pa.array(values, pa.list_(pa.string())).take(pa.array(codes))


def _maps(values: Sequence[dict[str, str]]) -> pa.MapArray:
    keys = texts(list(chain.from_iterable(values)))
    items = texts(list(chain.from_iterable(tags.values() for tags in values)))
    return pa.MapArray.from_arrays(pa.array(_offsets(_lengths(values))), keys, items)
