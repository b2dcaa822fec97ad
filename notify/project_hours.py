"""The counts of projects by hour, as the log has them, and the rises and silences that they show. Pure.

An hour (Unix hours, by the time of receipt) is complete once everything that arrived in it has been counted.
Silence is judged of complete hours alone, and only of those that were counted as they went by: after an
outage, events of its hours may still arrive.
"""

from collections.abc import Mapping
from typing import Final

from processors.aggregator.escalation import Hours, escalates
from schemas.issues import ESCALATING_MS, Subject
from schemas.notifications import Cause, CauseKind, HoursRecord
from schemas.times import HOUR_MS, iso, parse_iso

LEAST_OF_RISE: Final = 100
"""Events in an hour below which no project escalates."""
LEAST_OF_SILENCE: Final = 20
"""Usual events below which nobody misses them."""
LEAST_SILENT: Final = 2
"""Hours that are silent at least. Of the last one no event is missed yet: a nightly job doesn't begin on the minute."""
KEPT: Final = 22 * 24
"""Hours that are kept: the usual count of an hour a week ago needs those of the two weeks before."""
_WEEK: Final = 7 * 24
_DAY: Final = 24


class ProjectHours:
    """The sums of the records, in order."""

    def __init__(self) -> None:
        self.next_offsets: dict[int, int] = {}
        """How far `outcomes` is counted, by partition."""
        self.complete = 0
        """The first hour that isn't complete."""
        self.watched = 0
        """The first hour of those that were counted as they went by."""
        self._hours: dict[str, dict[int, int]] = {}
        self._since: dict[str, int] = {}
        self._escalated: dict[str, int] = {}

    def add(self, record: HoursRecord) -> None:
        """Count a record, unless it doesn't begin where the last one ended: its writer had been replaced."""
        # A log whose beginning has expired begins anywhere.
        if self.next_offsets and record.first_offsets != self.next_offsets:
            return
        self.next_offsets = record.next_offsets
        for project, counts in record.counts.items():
            hours = self._hours.setdefault(project, {})
            for hour, count in counts.items():
                hours[hour] = hours.get(hour, 0) + count
            self._since[project] = min(self._since.get(project, min(counts)), *counts)
        if record.complete > self.complete:
            if record.complete > self.complete + 1:
                self.watched = record.complete
            self.complete = record.complete
            self._forget(record.complete - KEPT)

    def count(self, project: str, hour: int) -> int:
        """The events of a project in an hour, as far as they are recorded."""
        return self._hours.get(project, {}).get(hour, 0)

    def note(self, cause: Cause) -> None:
        """A cause is in the log."""
        if cause.kind == "projectEscalated":
            self._escalated[cause.project_id] = parse_iso(cause.at) // HOUR_MS

    def rise(self, project: str, hour: int, pending: Mapping[int, int]) -> Cause | None:
        """The rise of a project in this hour, by the recorded counts and the `pending` ones.

        It is judged like that of an issue, at most once a day.
        """
        hours: Hours = (self._hours.get(project, {}), pending)
        since = min(self._since.get(project, hour), hour, *pending)
        is_calm = hour - self._escalated.get(project, 0) >= ESCALATING_MS // HOUR_MS
        if not is_calm or hour - since < _DAY or not escalates(hours, hour, since, LEAST_OF_RISE):
            return None
        events = sum(one.get(hour, 0) for one in hours)
        return _cause("projectEscalated", project, hour, hour * HOUR_MS, str(events))

    def silence(self, project: str, pending: Mapping[int, int]) -> Cause | None:
        """The silence of a project that usually has events in these hours, unless its last week had such silences."""
        hours, since = self._hours.get(project, {}), self._since.get(project, self.complete)
        if any(hour >= self.complete for hour in (*pending, *hours)):
            return None
        begin = max(hours, default=self.complete) + 1
        first = max(begin, self.watched)
        if self.complete - first < LEAST_SILENT:
            return None
        missed = _missed(hours, since, first, self.complete)
        if missed < max(LEAST_OF_SILENCE, 2 * _most_missed(hours, since, begin)):
            return None
        return _cause(
            "projectSilent", project, begin, self.complete * HOUR_MS, f"{iso(begin * HOUR_MS)[:16]}Z"
        )

    def _forget(self, before: int) -> None:
        for project, hours in self._hours.items():
            if any(hour < before for hour in hours):
                self._hours[project] = {hour: count for hour, count in hours.items() if hour >= before}


def _cause(kind: CauseKind, project: str, hour: int, at_ms: int, value: str) -> Cause:
    return Cause(f"{project}-{kind}-{hour}", project, "", kind, iso(at_ms), Subject(), value)


def _usual(hours: Mapping[int, int], since: int, hour: int) -> int:
    """The least count a week and two weeks before, of this hour and its neighbours.

    Hours from before the project's first are left out.
    """
    before = [hour - back for back in (_WEEK, 2 * _WEEK) if hour - back > since]
    return min((hours.get(near, 0) for at in before for near in (at - 1, at, at + 1)), default=0)


def _missed(hours: Mapping[int, int], since: int, first: int, end: int) -> int:
    """The usual events of a silence, without those of its last hour."""
    return sum(_usual(hours, since, hour) for hour in range(first, end - 1))


def _most_missed(hours: Mapping[int, int], since: int, end: int) -> int:
    """The most that any silence of the week before `end` missed."""
    most, first = 0, max(end - _WEEK, since)
    for hour in range(first, end):
        if hours.get(hour, 0):
            most, first = max(most, _missed(hours, since, first, hour)), hour + 1
    return most
