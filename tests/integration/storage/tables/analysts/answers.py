"""The fifteen questions of docs/analyze/questions.md, answered by counting in lists.

Times are texts as in ClickHouse's JSON.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import Struct

from schemas.times import DAY_MS, HOUR_MS, from_ms, parse_iso
from tests.integration.storage.tables.analysts.world import SHOP, Happened, World

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Row = list[Any]


class Selection(Struct, frozen=True):
    """The values of Grafana's variables; the ends of the range are Unix ms, both included."""

    start: int
    end: int
    issue: str
    budget: int

    def within(self, events: Iterable[Happened]) -> list[Happened]:
        """Events in the range."""
        return [event for event in events if self.start <= event.ts <= self.end]

    def hours(self, events: Iterable[Happened]) -> list[Happened]:
        """Events of the hours that begin in the range, which is of whole seconds."""
        return [e for e in events if self.start <= e.ts // HOUR_MS * HOUR_MS <= self.end]

    def days(self, events: Iterable[Happened]) -> list[Happened]:
        """Events of the days that the range touches."""
        return [e for e in events if self.start // DAY_MS <= e.ts // DAY_MS <= self.end // DAY_MS]

    @property
    def span_days(self) -> int:
        """How many days the range touches."""
        return self.end // DAY_MS - self.start // DAY_MS + 1


def text(ms: int) -> str:
    """A DateTime64(3)."""
    return from_ms(ms).strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03}"


def day(ms: int) -> str:
    """A Date."""
    return from_ms(ms).date().isoformat()


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by key, keys in order."""
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return dict(sorted(found.items(), key=lambda pair: pair[0]))  # type: ignore[arg-type, return-value]


def people(events: Iterable[Happened]) -> set[str]:
    """Users that are known."""
    return {event.user for event in events} - {""}


def crash_free(world: World, selection: Selection) -> list[Row]:
    rows: list[Row] = []
    known = [event for event in selection.within(world.of(SHOP)) if event.user]
    for (on, release), events in grouped(known, lambda e: (day(e.ts), e.release)).items():
        seen = len(people(events))
        crashed = len(people(e for e in events if e.kind != "error" or e.tags.get("crash") == "true"))
        rows.append([on, release, seen, crashed, round(100 * (seen - crashed) / seen, 1)])
    return rows


def new_issues(world: World, selection: Selection) -> list[Row]:
    born = [i for i in world.shown(SHOP) if selection.start <= i.first_seen_ms <= selection.end]
    rows: list[Row] = [
        [
            release,
            len(issues),
            sum(issue.status == "open" for issue in issues),
            text(min(issue.first_seen_ms for issue in issues)),
        ]
        for release, issues in grouped(born, lambda i: i.first_release).items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def top_tags(world: World, selection: Selection) -> list[Row]:
    counts = Counter(
        pair
        for event in selection.within(world.of(SHOP))
        if world.issue(event) == selection.issue
        for pair in event.tags.items()
    )
    rows: list[Row] = sorted(
        ([key, value, n] for (key, value), n in counts.items()), key=lambda r: (r[0], -r[2], r[1])
    )
    return [row for of_key in grouped(rows, lambda r: r[0]).values() for row in of_key[:5]]


def busiest_users(world: World, selection: Selection) -> list[Row]:
    known = [event for event in selection.within(world.of(SHOP)) if event.user]
    rows: list[Row] = [
        [user, len(events), len({world.issue(e) for e in events}), text(max(e.ts for e in events))]
        for user, events in grouped(known, lambda e: e.user).items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:20]


def first_new_issue(world: World, selection: Selection) -> list[Row]:
    opened = grouped(world.shown(SHOP), lambda i: i.first_release)
    rows: list[Row] = []
    for release, events in grouped(world.of(SHOP), lambda e: e.release).items():
        if release in opened:
            since = min(event.ts for event in events)
            first = min(issue.first_seen_ms for issue in opened[release])
            rows.append([release, text(since), (first - since) // 60_000, len(opened[release])])
    return sorted(rows, key=lambda row: (row[1], row[0]))


def regressions(world: World, selection: Selection) -> list[Row]:
    whole = {i.id: i.merged_into or i.id for i in world.issues}
    found = [
        change
        for change in world.activity
        if change.project_id == str(SHOP)
        and change.kind == "regressed"
        and selection.start <= parse_iso(change.at) <= selection.end
    ]
    rows: list[Row] = [
        [
            release,
            len(changes),
            len({whole[c.issue] for c in changes}),
            text(max(parse_iso(c.at) for c in changes)),
        ]
        for release, changes in grouped(found, lambda c: str(c.data["release"])).items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def spikes(world: World, selection: Selection) -> list[Row]:
    until = selection.end // HOUR_MS * HOUR_MS
    recent = [e for e in world.of(SHOP) if until - 14 * DAY_MS <= e.ts < until]
    shown = {issue.id: issue for issue in world.shown(SHOP)}
    rows: list[Row] = []
    for issue, events in grouped(recent, world.issue).items():
        now = sum(event.ts >= until - 7 * DAY_MS for event in events)
        before = len(events) - now
        if now >= 10 and now >= 2 * before:
            rows.append([issue, shown[issue].error_type, shown[issue].message, now, before])
    return sorted(rows, key=lambda row: (-row[3] / max(row[4], 1), row[0]))[:20]


def outcomes(world: World, selection: Selection) -> list[Row]:
    found = [
        o
        for o in world.outcomes
        if o.project_id == str(SHOP) and selection.start <= parse_iso(o.minute) <= selection.end
    ]
    return [
        [*key, sum(outcome.count for outcome in group)]
        for key, group in grouped(found, lambda o: (o.sdk, o.outcome, o.reason)).items()
    ]


def time_to_resolve(world: World, selection: Selection) -> list[Row]:
    took: list[tuple[int, float]] = []
    wanted = ("created", "regressed", "reopened", "resolved")
    changes = [c for c in world.activity if c.project_id == str(SHOP) and c.kind in wanted]
    for of_issue in grouped(changes, lambda c: c.issue).values():
        life = sorted(of_issue, key=lambda c: (c.at, c.id))
        for before, change in pairwise(life):
            at = parse_iso(change.at)
            if (
                change.kind == "resolved"
                and before.kind != "resolved"
                and selection.start <= at <= selection.end
            ):
                took.append((at, (at - parse_iso(before.at)) / HOUR_MS))
    rows: list[Row] = []
    for week, group in grouped(took, lambda pair: monday(pair[0])).items():
        hours = sorted(hours for _, hours in group)
        mean = sum(hours) / len(hours)
        rows.append([week, len(hours), round(mean, 2), round(hours[len(hours) // 2], 2)])
    return rows


def monday(ms: int) -> str:
    """The week's first day."""
    on = from_ms(ms).date()
    return (on - timedelta(days=on.weekday())).isoformat()


def error_budget(world: World, selection: Selection) -> list[Row]:
    allowed = selection.budget * selection.span_days
    rows: list[Row] = [
        [name, len(events), allowed, round(100 * len(events) / allowed, 1)]
        for name, events in grouped(selection.days(world.of(SHOP)), lambda e: e.environment).items()
    ]
    return sorted(rows, key=lambda row: (-row[3], row[0]))


def adoption(world: World, selection: Selection) -> list[Row]:
    events = selection.days(world.of(SHOP))
    of_day = Counter(day(event.ts) for event in events)
    return [
        [on, release, len(group), len(people(group)), round(100 * len(group) / of_day[on], 1)]
        for (on, release), group in grouped(events, lambda e: (day(e.ts), e.release)).items()
    ]


def lateness(world: World, selection: Selection) -> list[Row]:
    rows: list[Row] = []
    for sdk, events in grouped(selection.within(world.of(SHOP)), lambda e: e.sdk).items():
        late = sorted(max(0, event.received - event.ts) / 1000 for event in events)
        rows.append([sdk, len(late), late[len(late) // 2], late[int(0.95 * len(late))], late[-1]])
    return sorted(rows, key=lambda row: (-row[3], row[0]))


def merged(world: World, selection: Selection) -> list[Row]:
    several = {issue.id for issue in world.shown(SHOP) if len(issue.fingerprints) > 1}
    found = [e for e in selection.within(world.of(SHOP)) if world.issue(e) in several]
    rows: list[Row] = [
        [issue, f"{fingerprint:016x}", len(events), text(min(e.ts for e in events)), text(max(e.ts for e in events))]
        for (issue, fingerprint), events in grouped(found, lambda e: (world.issue(e), e.fingerprint)).items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row[0], -row[2], row[1]))


def volume(world: World, selection: Selection) -> list[Row]:
    rows: list[Row] = []
    for project in world.projects:
        sent = len(selection.hours(world.of(project.number)))
        a_day = round(sent / selection.span_days, 1)
        rows.append(
            [project.name, project.retention_days, sent, a_day, round(a_day * project.retention_days)]
        )
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def over_time(world: World, selection: Selection) -> list[Row]:
    return [
        [from_ms(hour).strftime("%Y-%m-%d %H:%M:%S"), len(events), len(people(events))]
        for hour, events in grouped(
            selection.hours(world.of(SHOP)), lambda e: e.ts // HOUR_MS * HOUR_MS
        ).items()
    ]


ANSWERS: tuple[Callable[[World, Selection], list[Row]], ...] = (
    *(crash_free, new_issues, top_tags, busiest_users, first_new_issue, regressions, spikes, outcomes),
    *(time_to_resolve, error_budget, adoption, lateness, merged, volume, over_time),
)
"""In the order of the document."""
