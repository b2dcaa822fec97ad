"""Ids as fixed keys: 16 bytes that stand for (project, uuid), with the uuid's hour in the first byte.

The hour of a uuid of version 7 says where an index must look: equal ids have equal hours, whatever either clock said. It
is taken modulo 256, so that ids with invented times fall somewhere bounded.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

KEY_BYTES: Final = 16
BUCKETS: Final = 256
Words = NDArray[np.uint64]

_HOUR_MS: Final = np.uint64(3_600_000)
_LOW_56: Final = np.uint64((1 << 56) - 1)


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64: a bijection of 64 bits, so no two words become one."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def id_keys(projects: Sequence[int], ids: Sequence[bytes]) -> bytes:
    """The keys of (project, 16-byte uuid) pairs, joined.

    Within a project two ids share a key only where their 62 random bits, their hour (modulo 256) and 56 mixed bits of
    their first half are all equal; an id of another project must equal it in 118 bits.
    """
    raw = np.frombuffer(b"".join(ids), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    low = _mix(raw[:, 1] ^ _mix(np.array(projects, dtype=np.uint64)))
    hour = (raw[:, 0] >> np.uint64(16)) // _HOUR_MS & np.uint64(BUCKETS - 1)
    high = hour << np.uint64(56) | _mix(raw[:, 0] ^ low) & _LOW_56
    return np.stack((high, low), axis=1).astype(">u8").tobytes()


def split(keys: bytes) -> list[bytes]:
    """Joined keys one by one."""
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)]


def words(keys: bytes) -> tuple[Words, Words]:
    """High and low halves of joined keys; the bucket is the high half's first byte."""
    raw = np.frombuffer(keys, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(raw[:, 0]), np.ascontiguousarray(raw[:, 1])
