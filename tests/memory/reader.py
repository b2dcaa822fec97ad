"""Events without ClickHouse: the same questions, answered by looking at every event."""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import singledispatchmethod
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec

from query.evaluate import matches
from query.event_view import IssueView
from query.keys import KEYS, nearest
from query.parse import parse
from query.tree import FIELDS, ISSUE_FIELDS
from schemas.errors import QueryError
from schemas.ids import hex64, parse_hex64
from schemas.times import iso, parse_iso
from storage.errors import BadQuery, DamagedPayload, NotFound
from storage.reader.answers import (
    ActivityPage,
    ActivityRow,
    EventDetail,
    EventPage,
    GroupingOf,
    Interval,
    Issue,
    IssuePage,
    Keys,
    KeyWarning,
    OutcomeCount,
    OutcomeSeries,
    Point,
    Release,
    Releases,
    RuleSkipped,
    Sample,
    Series,
    SimilarIssues,
    TagFacets,
    TagValues,
)
from storage.reader.completion import CompleteField, CompleteKey, CompleteTag, FindUnknownKeys
from storage.reader.count_calls import (
    CountOutcomes,
    GetIssueStats,
    GetProjectStats,
    ListReleases,
    ListSkippedRules,
)
from storage.reader.cursors import EventCursor, IssueCursor, ReleaseCursor, read_cursor, write_cursor
from storage.reader.event_calls import ListIssueEvents, ListProjectEvents, SampleEvents
from storage.reader.event_detail import GetIssueEvent, GetProjectEvent
from storage.reader.issue_calls import FindIssues, FindProject, GetIssue, ListActivity
from storage.reader.issue_list import ListIssues
from storage.reader.ranges import (
    DAY_MS,
    HOUR_MS,
    Range,
    floor,
    resolve_range,
    trend_counts,
    trend_unit,
    trend_window,
)
from storage.reader.reader import ReadCall
from storage.reader.similar import ListSimilarIssues
from storage.reader.tag_calls import CountIssueTags, CountProjectTags
from tests.memory.paging import issue_page
from tests.memory.shapes import facets, find, merged_by, rank, similar, values, within
from tests.memory.stored import StoredEvent, issue_answer, issue_view, own_parts, parts_of, store, users_of

A = TypeVar("A")
_UNITS: dict[str, int] = {"minute": 60_000, "hour": HOUR_MS, "day": DAY_MS}


class MemoryReader:
    """As `storage.reader.reader.Reader`; filled by `add` and the lists beside it."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self._events: list[StoredEvent] = []
        self._events_of: dict[int, list[StoredEvent]] = defaultdict(list)
        self._issue_of: dict[int, int] = {}
        self.states: dict[str, IssueView] = defaultdict(IssueView)
        self.changes: dict[str, list[ActivityRow]] = defaultdict(list)
        self.rules_skipped_of: dict[int, list[RuleSkipped]] = defaultdict(list)
        self.outcome_counts: dict[int, list[OutcomeCount]] = defaultdict(list)
        self.damaged: set[str] = set()
        self.failing: dict[type[ReadCall[Any]], Exception] = {}
        self.calls: Counter[type[ReadCall[Any]]] = Counter()

    def add(
        self,
        project: int,
        payload: bytes,
        *,
        issue: int = 1,
        fingerprint: int | None = None,
        sdk: str = "test/1.0",
        received_ms: int | None = None,
        grouping: GroupingOf | None = None,
    ) -> None:
        """Keep an event in an issue."""
        why = grouping or GroupingOf("1", "stack", ["Error"])
        received = self.now_ms() if received_ms is None else received_ms
        event = store(
            project,
            issue,
            payload,
            fingerprint=issue if fingerprint is None else fingerprint,
            sdk=sdk,
            received_ms=received,
            grouping=why,
        )
        self.add_stored(event)

    def add_stored(self, event: StoredEvent) -> None:
        """Keep an event as it is."""
        insort(self._events, event, key=attrgetter("order"))
        insort(self._events_of[event.issue], event, key=attrgetter("order"))
        # A merged one is found by its own id, too.
        self._issue_of[event.issue] = self._issue_of[event.opened] = event.issue

    async def read(self, call: ReadCall[A]) -> A:
        """The answer of a call, from what `add` was given. Raises what `failing` has for calls of its type."""
        self.calls[type(call)] += 1
        if error := self.failing.get(type(call)):
            raise error
        return cast(A, await self._answered(call))

    @singledispatchmethod
    async def _answered(self, call: ReadCall[Any]) -> Any:
        raise NotImplementedError(type(call).__name__)

    async def ping(self) -> None:
        """Always there."""

    @_answered.register
    async def _issues(self, call: ListIssues) -> IssuePage:
        """Issues with matching events, the greatest first."""
        after = read_cursor(call.cursor, IssueCursor)
        span = self._span(call.start, call.end)
        found: dict[int, list[StoredEvent]] = defaultdict(list)
        for event in self._matching(self._of_project(call.project), call.query, span):
            found[event.issue].append(event)
        answers = [self._answer(call.query, events, span) for events in found.values()]
        ranked = sorted(
            ((rank(issue, call.sort), issue) for issue in answers), key=lambda pair: pair[0], reverse=True
        )
        return issue_page(ranked, call.sort, call.limit, after, span, self.now_ms())

    @_answered.register
    async def _issue(self, call: GetIssue) -> Issue:
        """One issue, also when nothing of it lies in the range."""
        span = self._span(call.start, call.end)
        counted = self._matching(self._of_issue(call.issue), call.query, span)
        return self._answer(call.query, counted, span, self._of_issue(call.issue))

    @_answered.register
    async def _activity(self, call: ListActivity) -> ActivityPage:
        """The changes that were put in, of its parts too; the fake has one page."""
        events = self._of_issue(call.issue)
        read_cursor(call.cursor, EventCursor)
        parts = parts_of(events)
        told = [change for part in sorted(parts) for change in self.changes[part]]
        return ActivityPage(sorted(told, key=lambda one: (one.at, one.id), reverse=True)[: call.limit], None)

    @_answered.register
    async def _similar(self, call: ListSimilarIssues) -> SimilarIssues:
        """Issues with equal parts; here every part weighs the same."""
        own = self._of_issue(call.issue)[-1]
        parts = own_parts(self._of_issue(call.issue))
        found = []
        for other in {event.issue for event in self._of_project(own.project)} - {own.issue}:
            events = self._of_issue(hex64(other))
            others = own_parts(events)
            shared = [part for part in parts if part in others]
            if shared:
                share = len(shared) / len({*parts, *others})
                found.append(similar(self._answer("", [], self._span(None, None), events), share, shared))
        return SimilarIssues(sorted(found, key=lambda one: (-one.share, one.id))[: call.limit])

    @_answered.register
    async def _issue_events(self, call: ListIssueEvents) -> EventPage:
        """Events of an issue, newest first; without a range, of all that there are."""
        span = self._span(0 if call.start is None else call.start, call.end)
        return self._page(self._of_issue(call.issue), call.query, span, call.limit, call.cursor)

    @_answered.register
    async def _project_events(self, call: ListProjectEvents) -> EventPage:
        """Events of a project, newest first."""
        return self._page(
            self._of_project(call.project),
            call.query,
            self._span(call.start, call.end),
            call.limit,
            call.cursor,
        )

    @_answered.register
    async def _issue_event(self, call: GetIssueEvent) -> EventDetail:
        """An event of an issue."""
        return self._whole(find(self._of_issue(call.issue), call.event, self._events))

    @_answered.register
    async def _project_event(self, call: GetProjectEvent) -> EventDetail:
        """An event of a project."""
        return self._whole(find(self._of_project(call.project), call.event, self._events))

    def _whole(self, detail: EventDetail) -> EventDetail:
        detail = msgspec.structs.replace(
            detail, merged=merged_by(detail.fingerprint, self.changes[detail.issue_id])
        )
        if detail.event_id in self.damaged:
            raise DamagedPayload(msgspec.structs.replace(detail, event=None))
        return detail

    @_answered.register
    async def _sample(self, call: SampleEvents) -> list[Sample]:
        """The newest events, whole."""
        found = self._matching(self._of_project(call.project), call.query, self._span(call.start, call.end))
        return [
            Sample(
                event=msgspec.Raw(event.payload),
                issue_id=hex64(event.issue),
                fingerprint=hex64(event.fingerprint),
                sdk=event.view.sdk,
                received_ms=event.received_ms,
            )
            for event in found[::-1][: call.limit]
            if event.id not in self.damaged
        ]

    @_answered.register
    async def _issues_by_fingerprint(self, call: FindIssues) -> dict[str, str]:
        """The issues that fingerprints belong to."""
        known = {hex64(event.fingerprint): hex64(event.issue) for event in self._of_project(call.project)}
        return {one: known[one] for one in call.fingerprints if one in known}

    @_answered.register
    async def _issue_tags(self, call: CountIssueTags) -> TagFacets:
        """Tags of an issue; without a range, of all its events."""
        span = self._span(0 if call.start is None else call.start, call.end)
        found = self._matching(self._of_issue(call.issue), call.query, span)
        return facets(found, len(found))

    @_answered.register
    async def _project_tags(self, call: CountProjectTags) -> TagFacets:
        """Tags of a project."""
        found = self._matching(self._of_project(call.project), call.query, self._span(call.start, call.end))
        # Without a query the real one reads a rollup, which is no sample of events.
        return facets(found, len(found) if call.query else 0)

    @_answered.register
    async def _tag_values(self, call: CompleteTag) -> TagValues:
        """Values of a tag."""
        return values(
            [e.view.tags[call.key] for e in self._of_project(call.project) if call.key in e.view.tags],
            call.prefix,
        )

    @_answered.register
    async def _field_values(self, call: CompleteField) -> TagValues:
        """Values of a field."""
        return values(
            [v for e in self._of_project(call.project) for v in e.view.values(call.field)], call.prefix
        )

    @_answered.register
    async def _keys(self, call: CompleteKey) -> Keys:
        """Fields, then tags, the most frequent first."""
        tags = Counter(key for event in self._of_project(call.project) for key in event.view.tags)
        names = [*FIELDS, *ISSUE_FIELDS, *(key for key, _ in tags.most_common())]
        return Keys([name for name in dict.fromkeys(names) if name.startswith(call.prefix)])

    @_answered.register
    async def _unknown_keys(self, call: FindUnknownKeys) -> list[KeyWarning]:
        """Keys that are no tag's."""
        tags = {key for event in self._of_project(call.project) for key in event.view.tags}
        return [KeyWarning(key, nearest(key, [*KEYS, *sorted(tags)])) for key in call.keys if key not in tags]

    @_answered.register
    async def _issue_stats(self, call: GetIssueStats) -> Series:
        """An issue over time."""
        return self._series(
            self._of_issue(call.issue), call.query, call.interval, self._span(call.start, call.end)
        )

    @_answered.register
    async def _project_stats(self, call: GetProjectStats) -> Series:
        """A project over time."""
        return self._series(
            self._of_project(call.project), call.query, call.interval, self._span(call.start, call.end)
        )

    @_answered.register
    async def _releases(self, call: ListReleases) -> Releases:
        """Releases, the newest first."""
        events = self._of_project(call.project)
        found: dict[str, list[StoredEvent]] = defaultdict(list)
        firsts: dict[int, str] = {}
        for event in events:
            found[event.view.release].append(event)
            firsts.setdefault(event.issue, event.view.release)
        regressions = Counter(
            msgspec.json.decode(change.data).get("release")
            for issue in parts_of(events)
            for change in self.changes[issue]
            if change.kind == "regressed"
        )
        rows = [
            Release(
                release=name,
                first_seen=iso(seen[0].time),
                last_seen=iso(seen[-1].time),
                events=len(seen),
                new_issues=sum(first == name for first in firsts.values()),
                regressions=regressions[name],
            )
            for name, seen in found.items()
        ]
        last = read_cursor(call.cursor, ReleaseCursor)
        places = {name: (-seen[0].time, name) for name, seen in found.items()}
        rows = sorted(
            (row for row in rows if last is None or places[row.release] > (-last.time, last.release)),
            key=lambda row: places[row.release],
        )
        page = rows[: call.limit]
        end = page[-1].release if len(rows) > call.limit else None
        return Releases(page, write_cursor(ReleaseCursor(found[end][0].time, end)) if end else None)

    @_answered.register
    async def _rules_skipped(self, call: ListSkippedRules) -> list[RuleSkipped]:
        """What was put in."""
        return self.rules_skipped_of[call.project]

    @_answered.register
    async def _outcomes(self, call: CountOutcomes) -> OutcomeSeries:
        """The counts that were put in, by time only where an interval is asked for."""
        span = self._span(call.start, call.end)
        sums: Counter[tuple[str | None, str, str, str]] = Counter()
        for one in self.outcome_counts[call.project]:
            if one.time is not None and not within(parse_iso(one.time), span):
                continue
            time = None
            if call.interval is not None and one.time is not None:
                time = iso(floor(parse_iso(one.time), _UNITS[call.interval]))
            sums[time, one.outcome, one.sdk, one.reason] += one.count
        return OutcomeSeries(
            [OutcomeCount(*key, n) for key, n in sorted(sums.items(), key=lambda i: str(i[0]))]
        )

    @_answered.register
    async def _project_of(self, call: FindProject) -> int:
        """The project of an issue."""
        return self._of_issue(call.issue)[0].project

    def _span(self, start: int | None, end: int | None) -> Range:
        return resolve_range(start, end, self.now_ms())

    def _of_project(self, project: int) -> list[StoredEvent]:
        return [event for event in self._events if event.project == project]

    def _of_issue(self, issue: str) -> list[StoredEvent]:
        whole = self._issue_of.get(parse_hex64(issue) or 0)
        if whole is None:
            raise NotFound("there is no such issue")
        return list(self._events_of[whole])

    def _matching(self, events: list[StoredEvent], query: str, span: Range) -> list[StoredEvent]:
        try:
            tree = parse(query)
        except QueryError as error:
            raise BadQuery.of(error) from None
        lives: dict[int, IssueView] = {}
        found = []
        for event in events:
            if not within(event.time, span):
                continue
            if event.issue not in lives:
                name = hex64(event.issue)
                lives[event.issue] = issue_view(self._of_issue(name), self.states[name])
            view = msgspec.structs.replace(event.view, issue=lives[event.issue])
            if matches(tree, view, self.now_ms()):
                found.append(event)
        return found

    def _answer(
        self, query: str, counted: list[StoredEvent], span: Range, life: list[StoredEvent] | None = None
    ) -> Issue:
        whole = life or self._of_issue(hex64(counted[0].issue))
        unit = _UNITS[trend_unit(span, self.now_ms())]
        # The trend goes back as far as it is long, wherever the range begins.
        window = self._matching(whole, query, trend_window(span, self.now_ms()))
        counts = Counter(floor(event.time, unit) for event in window)
        trend = trend_counts(dict(counts), span, self.now_ms())
        return issue_answer(whole, counted, self.states[hex64(whole[0].issue)], trend)

    def _page(
        self, events: list[StoredEvent], query: str, span: Range, limit: int, cursor: str | None
    ) -> EventPage:
        after = read_cursor(cursor, EventCursor)
        rest = [
            event
            for event in reversed(self._matching(events, query, span))
            if after is None or event.order < (after.time, after.event)
        ]
        page = rest[:limit]
        more = None
        if len(rest) > limit:
            time, name = page[-1].order
            more = write_cursor(EventCursor(span.start, span.end, self.now_ms(), time, name))
        return EventPage([event.row() for event in page], more)

    def _series(
        self, events: list[StoredEvent], query: str, interval: Interval | None, span: Range
    ) -> Series:
        end = self.now_ms() + 1 if span.end is None else span.end
        chosen: Interval = interval or ("hour" if end - span.start <= 2 * DAY_MS else "day")
        unit = _UNITS[chosen]
        if (end - span.start) // unit > 2000:
            raise BadQuery("interval", "a longer one, for so long a range")
        found: dict[int, list[StoredEvent]] = defaultdict(list)
        for event in self._matching(events, query, span):
            found[floor(event.time, unit)].append(event)
        return Series(
            [
                Point(iso(at), len(found[at]), users_of(found[at]))
                for at in range(floor(span.start, unit), end, unit)
            ],
            chosen,
        )
