"""Answers shaped from lists of events."""

from collections import Counter, defaultdict
from math import sqrt
from typing import Any, Final

import msgspec

from schemas.times import parse_iso
from storage.errors import NotFound
from storage.reader.answers import (
    ActivityRow,
    EventDetail,
    Issue,
    MergedBy,
    Similar,
    Sort,
    TagFacet,
    TagFacets,
    TagValue,
    TagValues,
)
from storage.reader.ranges import Range
from tests.memory.stored import StoredEvent

TOP: Final = 10


def within(ms: int, span: Range) -> bool:
    """Whether a time lies in the range."""
    return span.start <= ms and (span.end is None or ms < span.end)


def rank(issue: Issue, sort: Sort) -> tuple[int, str]:
    """Key and id by which a list is ordered, the greatest first."""
    key: int
    match sort:
        case "lastSeen":
            key = parse_iso(issue.last_seen)
        case "firstSeen":
            key = parse_iso(issue.first_seen)
        case "events":
            key = issue.events
        case "users":
            key = issue.users
        case "trend":
            half = len(issue.trend) // 2
            older, newer = sum(issue.trend[:half]), sum(issue.trend[half:])
            key = round(1000 * (newer - older) / sqrt(max(1, newer + older)))
    return key, issue.id


def find(events: list[StoredEvent], wanted: str, everything: list[StoredEvent]) -> EventDetail:
    """An event by id, `latest` or `oldest`, between its neighbours in the issue. Raises NotFound."""
    if wanted in {"latest", "oldest"}:
        found = events[-1 if wanted == "latest" else 0] if events else None
    else:
        found = next((event for event in events if event.id == wanted.lower()), None)
    if found is None:
        raise NotFound("there is no such event")
    mates = [event for event in everything if event.issue == found.issue]
    place = mates.index(found)
    before = mates[place - 1] if place else None
    after = mates[place + 1] if place + 1 < len(mates) else None
    return found.detail(before, after)


def merged_by(fingerprint: str, changes: list[ActivityRow]) -> MergedBy | None:
    """The last merge of a fingerprint among an issue's changes, the newest first."""
    for change in changes:
        if change.kind == "merged" and fingerprint in msgspec.json.decode(change.data).get(
            "fingerprints", ()
        ):
            return MergedBy(change.by, change.at)
    return None


def facets(events: list[StoredEvent], sample: int) -> TagFacets:
    """Tags with their most frequent values; `sample` is how many events were looked at, 0 for all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        for key, value in event.view.tags.items():
            counts[key][value] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    facets = [TagFacet(key, len(values), top(values)) for key, values in ordered]
    return TagFacets(facets, False, sample)


def values(values: list[Any], prefix: str) -> TagValues:
    """Values that begin with the prefix."""
    return TagValues(top(Counter(value for value in values if value.startswith(prefix))))


def top(values: Counter[str]) -> list[TagValue]:
    """The most frequent values."""
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    return [TagValue(value, events) for value, events in ordered[:TOP]]


def similar(issue: Issue, share: float, shared: list[str]) -> Similar:
    """An issue that is like another."""
    return Similar(
        id=issue.id,
        error_type=issue.error_type,
        message=issue.message,
        culprit=issue.culprit,
        status=issue.status,
        last_seen=issue.last_seen,
        total_events=issue.total_events,
        share=share,
        shared=shared,
        reason=", ".join(shared),
    )
