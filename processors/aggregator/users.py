"""Counting distinct users in bounded memory: a HyperLogLog sketch, exact for a handful, within about 2 % for millions."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Final

from datasketches import hll_sketch, hll_union, tgt_hll_type

LG_K: Final = 11
"""2^11 registers of 4 bits: 1.1 KB at most, a standard error of 1.8 %."""
_WRAP: Final = 1 << 64
_HALF: Final = 1 << 63


class Users:
    """A growing sketch of user hashes (unsigned, 64 bits)."""

    def __init__(self, sketch: str = "") -> None:
        self._hll = _read(sketch) if sketch else hll_sketch(LG_K, tgt_hll_type.HLL_4)

    def add(self, hashes: Iterable[int]) -> None:
        """Count users; one that was counted before changes nothing."""
        for value in hashes:
            self._hll.update(value - _WRAP if value >= _HALF else value)

    @property
    def count(self) -> int:
        """The estimate."""
        return round(float(self._hll.get_estimate()))

    def text(self) -> str:
        """The sketch in base64, empty where no user was counted."""
        return "" if self._hll.is_empty() else b64encode(self._hll.serialize_compact()).decode()


def united(sketches: Iterable[str]) -> Users:
    """The users of several sketches, each counted once."""
    union = hll_union(LG_K)
    for sketch in sketches:
        if sketch:
            union.update(_read(sketch))
    result = Users()
    result._hll = union.get_result(tgt_hll_type.HLL_4)
    return result


def _read(sketch: str) -> hll_sketch:
    return hll_sketch.deserialize(b64decode(sketch))
