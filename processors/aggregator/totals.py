"""Figures of issues. Pure.

An issue of several fingerprints keeps the figures of each and publishes their sums; the newest event of all
of them describes it. Distinct users are counted with a HyperLogLog sketch: exact for a handful, within about
2 % for millions.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Final, TypeVar

from datasketches import hll_sketch, hll_union, tgt_hll_type
from msgspec.structs import replace

from schemas.issues import IssueFields
from schemas.merges import Figures

LG_K: Final = 11
"""2^11 registers of 4 bits: 1.1 KB at most, a standard error of 1.8 %."""
_WRAP: Final = 1 << 64
_HALF: Final = 1 << 63


class Users:
    """A growing sketch of user hashes (unsigned, 64 bits)."""

    def __init__(self, sketch: str = "") -> None:
        self._hll = _read(sketch) if sketch else hll_sketch(LG_K, tgt_hll_type.HLL_4)

    def add(self, hashes: Iterable[int]) -> None:
        """Count users; a repeated user changes nothing."""
        for value in hashes:
            self._hll.update(value - _WRAP if value >= _HALF else value)

    @property
    def count(self) -> int:
        return round(float(self._hll.get_estimate()))

    def reaches(self, number: int) -> bool:
        """Whether `count` is at least this number."""
        return bool(self._hll.get_estimate() >= number - 0.5)

    def text(self) -> str:
        """The sketch in base64; empty if no user was counted."""
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


K = TypeVar("K", str, int)
Record = TypeVar("Record", bound=IssueFields)
HOURS: Final = 14 * 24
"""Hours before the newest event that an issue's record counts one by one."""


def figures(record: IssueFields) -> Figures:
    """The figures of a record."""
    return Figures(**{name: getattr(record, name) for name in Figures.__struct_fields__})


def added(parts: Iterable[Figures]) -> Figures:
    """The sum of several figures; parts without events add nothing.

    Users in more than one count once, within the sketch's error.
    """
    given = list(parts)
    all_parts = [part for part in given if part.events] or given
    oldest = min(all_parts, key=lambda part: (part.first_seen_ms, part.first_release))
    newest = max(all_parts, key=lambda part: (part.last_seen_ms, part.last_event))
    return Figures(
        events=sum(part.events for part in all_parts),
        first_seen_ms=oldest.first_seen_ms,
        first_release=oldest.first_release,
        last_seen_ms=newest.last_seen_ms,
        last_release=newest.last_release,
        last_event=newest.last_event,
        received_ms=max(part.received_ms for part in all_parts),
        users_sketch=united(part.users_sketch for part in all_parts).text(),
        platforms=_sum(part.platforms for part in all_parts),
        releases=_sum(part.releases for part in all_parts),
        environments=_sum(part.environments for part in all_parts),
        hours=recent(_sum(part.hours for part in all_parts)),
        error_type=newest.error_type,
        message=newest.message,
        culprit=newest.culprit,
    )


def recent(hours: dict[int, int]) -> dict[int, int]:
    """The hours within `HOURS` of the newest."""
    if len(hours) <= HOURS:
        return hours
    oldest = max(hours) - HOURS
    return {hour: count for hour, count in hours.items() if hour > oldest}


def whole(record: Record) -> Record:
    """The record of one fingerprint as it is published: sums with its members, own figures in `life.home`."""
    members = record.life.members
    if not members:
        return record
    home = figures(record)
    total = added([home, *(member.figures for member in members.values())])
    return replace(
        _with(record, total),
        fingerprints=(record.fingerprints[0], *(member.fingerprint for member in members.values())),
        life=replace(record.life, home=home),
    )


def own(record: Record) -> Record:
    """A published record without the figures of its members, which `life` still has."""
    home = record.life.home
    if home is None:
        return record
    return replace(
        _with(record, home), fingerprints=record.fingerprints[:1], life=replace(record.life, home=None)
    )


def _with(record: Record, counted: Figures) -> Record:
    fields = {name: getattr(counted, name) for name in Figures.__struct_fields__}
    return replace(record, users=Users(counted.users_sketch).count, **fields)


def _sum(counts: Iterable[dict[K, int]]) -> dict[K, int]:
    total: dict[K, int] = {}
    for part in counts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total
