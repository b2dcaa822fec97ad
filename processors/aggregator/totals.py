"""The sums of an issue that consists of several fingerprints: what each has counted stays apart, and is added up to be shown.

Such an issue is described by the newest event of all of them.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec.structs import replace

from processors.aggregator.users import Users, united
from schemas.issues import IssueRecord
from schemas.merges import Figures

K = TypeVar("K", str, int)
HOURS: Final = 14 * 24
"""Hours before the newest event that an issue's aggregate counts one by one."""


def figures(record: IssueRecord) -> Figures:
    """What a record counts."""
    return Figures(**{name: getattr(record, name) for name in Figures.__struct_fields__})


def added(parts: Iterable[Figures]) -> Figures:
    """Several figures together; users that are in more than one count once, within the sketch's error."""
    all_parts = list(parts)
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
    """The hours that are kept."""
    if len(hours) <= HOURS:
        return hours
    oldest = max(hours) - HOURS
    return {hour: count for hour, count in hours.items() if hour > oldest}


def whole(record: IssueRecord) -> IssueRecord:
    """The record of one fingerprint as it is published: with the figures of its members, its own kept beside them."""
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


def own(record: IssueRecord) -> IssueRecord:
    """A published record with the figures of its own fingerprint alone; its members stay named in `life`."""
    home = record.life.home
    if home is None:
        return record
    return replace(
        _with(record, home), fingerprints=record.fingerprints[:1], life=replace(record.life, home=None)
    )


def _with(record: IssueRecord, counted: Figures) -> IssueRecord:
    fields = {name: getattr(counted, name) for name in Figures.__struct_fields__}
    fields = {name: value for name, value in fields.items() if value is not None}
    return replace(record, users=Users(counted.users_sketch).count, **fields)


def _sum(counts: Iterable[dict[K, int]]) -> dict[K, int]:
    total: dict[K, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total
