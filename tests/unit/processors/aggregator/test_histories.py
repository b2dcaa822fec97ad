"""Random histories of events and commands, with repeats and crashes, against plain models of the expected state."""

import random
from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from processors.aggregator.escalation import worth_judging
from schemas.ids import hex64
from schemas.issues import ESCALATING_MS
from schemas.times import HOUR_MS
from tests.unit.processors.aggregator.world import START, Crash, World, id_of, increment

RANKED = ("app@1.9.0+9", "app@1.10.0-rc.1+1", "app@1.10.0+2", "app@1.10.0+10", "app@2+1")
RELEASES = (*RANKED, "app@blue+1", "app@green+1", "odd")
FINGERPRINTS = (1, 2, 3, 4)
LATER = (5, 6)
"""Fingerprints without events at first; a merge may name them."""
ALL = (*FINGERPRINTS, *LATER)

updates = st.one_of(
    st.just({"status": "open"}),
    st.just({"status": "resolved"}),
    st.builds(lambda release: {"resolvedIn": release}, st.sampled_from((*RELEASES, "next"))),
    st.just({"status": "ignored"}),
    st.builds(lambda n: {"ignoreUntil": {"events": n}}, st.integers(1, 4)),
    st.builds(lambda n: {"ignoreUntil": {"users": n}}, st.integers(1, 3)),
    st.just({"ignoreUntil": {"escalating": True}}),
    st.builds(lambda who: {"assignee": who}, st.sampled_from(("ann", "bob", None))),
)
histories = st.lists(
    st.one_of(
        st.tuples(
            st.just("event"), st.sampled_from(RELEASES), st.lists(st.integers(1, 4), max_size=2),
            st.sampled_from((1, 2, 30, 200)),
            st.sampled_from(("prod", "test")), st.integers(0, 80),
        ),
        st.tuples(st.just("update"), updates, st.integers(0, 5)),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


class Model:
    """One issue, as its text in the documentation says it."""

    def __init__(self) -> None:
        self.status, self.regressed = "open", False
        self.assignee: str | None = None
        self.resolved_in: str | None = None
        self.until: dict[str, int] | None = None
        self.known: list[str] = []
        self.at_fix: list[str] = []
        self.events = self.since = 0
        self.users: set[int] = set()
        self.environments: set[str] = set()
        self.hours: Counter[int] = Counter()
        self.escalated = -ESCALATING_MS // HOUR_MS
        self.description: list[str] = []

    def event(self, release: str, users: list[int], count: int, environment: str, hour: int) -> None:
        before = len(self.description)
        if self.events:
            self.description += [] if release in self.known else ["seenInRelease"]
            self.description += [] if environment in self.environments else ["seenInEnvironment"]
        else:
            self.description += ["created", "assigned"]
            self.assignee = "owner of 0"
        self.events += count
        self.environments.add(environment)
        self.hours[hour] += count
        # Increments with findings, or for a closed issue, are judged in full.
        stands_out = len(self.description) > before or self.status != "open"
        escalates = self._escalates(hour, count, stands_out=stands_out)
        if escalates:
            self.escalated = hour
            self.description.append("escalated")
        if self.status == "resolved" and self._is_after_fix(release):
            self._open(regressed=True)
            self.description.append("regressed")
        elif self.status == "ignored" and self.until:
            self.since += count
            self.users |= set(users)
            reached = {"events": self.since, "users": len(self.users), "escalating": escalates}
            if any(reached[name] >= wanted for name, wanted in self.until.items()):
                self._open()
                self.description.append("reopened")
        self.known += [] if release in self.known else [release]

    def _escalates(self, hour: int, count: int, *, stands_out: bool) -> bool:
        hours = self.hours
        first = min(hours)
        day = [hours[hour - back] for back in range(1, 25) if hour - back >= first]
        days = [
            max(hours[hour - 24 * n + k] for k in (-1, 0, 1)) for n in range(1, 14) if hour - 24 * n >= first
        ]
        usual = max(sum(one) / len(one) for one in (day, days) if one) if day else 0
        calm = not 0 <= hour - self.escalated < ESCALATING_MS // HOUR_MS
        grown = stands_out or worth_judging(hours[hour] - count, hours[hour])
        return hour > first and calm and grown and hours[hour] >= max(20, 4 * usual)

    def update(self, data: dict[str, Any]) -> None:
        if "assignee" in data:
            self.description += ["assigned"] if data["assignee"] != self.assignee else []
            self.assignee = data["assignee"]
        elif data.get("status") == "open":
            self.description += ["reopened"] if self.status != "open" else []
            if self.status != "open":
                self._open()
        elif data.get("status") == "resolved" or "resolvedIn" in data:
            wanted = data.get("resolvedIn")
            if (self.status, self.resolved_in) != ("resolved", wanted) or wanted == "next":
                self._open()
                self.status, self.resolved_in, self.at_fix = "resolved", wanted, list(self.known)
                self.description.append("resolved")
        else:
            until = data.get("ignoreUntil")
            if self.status != "ignored" or self.until or until:
                self._open()
                self.status, self.until, self.since, self.users = "ignored", until, 0, set()
                self.description.append("ignored")

    def _open(self, *, regressed: bool = False) -> None:
        self.status, self.regressed, self.resolved_in, self.until = "open", regressed, None, None

    def _is_after_fix(self, release: str) -> bool:
        fix, known = self.resolved_in, self.at_fix
        if fix is None:
            return True
        if fix == "next":
            ranked = [name for name in known if name in RANKED]
            if release in RANKED and ranked:
                return RANKED.index(release) > max(map(RANKED.index, ranked))
            return release not in known
        if release in RANKED and fix in RANKED:
            return RANKED.index(release) >= RANKED.index(fix)
        before = known[: known.index(fix)] if fix in known else known
        return release not in before and not any(_is_older(release, other) for other in before)


def _is_older(release: str, other: str) -> bool:
    return release in RANKED and other in RANKED and RANKED.index(release) < RANKED.index(other)


async def worked(world: World, luck: random.Random) -> None:
    """All work done, in takes of any size, by processes that are killed at any write."""
    while True:
        world.memory.crash_in = luck.choice((None, luck.randrange(1, 12)))
        try:
            await world.settle(limit=luck.randrange(1, 9))
        except Crash:
            world.restart()
        else:
            world.memory.crash_in = None
            return


@given(histories, st.integers(0, 1 << 32))
@example(
    [
        ("event", "app@1.10.0+2", [], 1, "prod", 0),
        ("update", {"resolvedIn": "app@blue+1"}, 0),
        ("event", "app@1.9.0+9", [], 1, "prod", 0),
    ],
    0,
)
@example(
    [
        ("event", "app@2+1", [], 1, "prod", 0),
        ("update", {"resolvedIn": "app@blue+1"}, 0),
        ("event", "app@1.10.0+2", [], 1, "prod", 0),
    ],
    0,
)
@example(
    [
        *[("event", "app@1.9.0+9", [], 1, "prod", 0)] * 6,
        ("event", "app@1.9.0+9", [], 30, "prod", 27),
        ("event", "app@1.9.0+9", [], 30, "prod", 1),
        ("event", "app@1.9.0+9", [], 1, "test", 27),
    ],
    0,
)
@example(
    [
        ("event", "app@2+1", [], 30, "prod", 3),
        ("update", {"ignoreUntil": {"escalating": True}}, 1),
        ("event", "app@2+1", [], 200, "test", 26),
        ("event", "app@2+1", [], 200, "test", 28),
    ],
    0,
)
async def test_states_and_activity_are_those_of_the_model(history: list[tuple[Any, ...]], seed: int) -> None:
    world, model, luck = World(), Model(), random.Random(seed)
    updates: list[tuple[str, Any]] = []
    for at, (what, *rest) in enumerate([("event", RELEASES[0], [], 1, "prod", 0), *history]):
        if what == "event":
            release, users, count, environment, hour = rest
            model.event(release, users, count, environment, hour)
            ms = START + hour * HOUR_MS
            world.send(1, increment(1, release, count, users, ms, environment, f"owner of {at}"))
        else:
            data, repeat = rest
            model.update(data)
            updates.append((world.ask(id_of(1), "update", data), data))
            if repeat == 0:
                again, same = luck.choice(updates)
                world.ask(id_of(1), "update", same, again)
        if luck.random() < 0.3:
            await worked(world, luck)
    await worked(world, luck)
    issue = world.issue(1)
    assert (issue.status, issue.regressed, issue.assignee) == (model.status, model.regressed, model.assignee)
    assert (issue.resolved_in, issue.ignore_until) == (model.resolved_in, model.until)
    assert issue.events == model.events
    assert [one.kind for one in world.activities()] == model.description
    assert world.dead_letter_messages() == []


steps = st.lists(
    st.one_of(
        st.tuples(st.just("event"), st.sampled_from(ALL), st.integers(1, 3)),
        st.tuples(st.just("merge"), st.sampled_from(FINGERPRINTS), st.sets(st.sampled_from(ALL), min_size=1)),
        st.tuples(st.just("unmerge"), st.sampled_from(FINGERPRINTS), st.sets(st.sampled_from(ALL), min_size=1)),
    ),
    min_size=1,
    max_size=14,
)  # fmt: skip


def ask(world: World, step: tuple[Any, ...], at: int) -> None:
    what, fingerprint, more = step
    if what == "event":
        users = [at * 10 + n for n in range(1, more + 1)]
        release = f"app@{1 + at % 4}+1"
        world.send(fingerprint, increment(fingerprint, release, more, users, START + at // 2 * HOUR_MS))
    elif what == "merge":
        issues = [id_of(other) for other in sorted(more) if other not in LATER]
        later = [hex64(other) for other in sorted(more) if other in LATER]
        world.ask(id_of(fingerprint), "merge", {"issues": issues, "fingerprints": later})
    else:
        world.ask(id_of(fingerprint), "unmerge", {"fingerprints": [hex64(other) for other in sorted(more)]})


@given(steps, st.integers(0, 1 << 32))
async def test_counts_are_right_after_every_step_of_merging(
    history: list[tuple[Any, ...]], seed: int
) -> None:
    world, luck = World(), random.Random(seed)
    counts: Counter[int] = Counter()
    home = {fingerprint: fingerprint for fingerprint in ALL}
    known = set(FINGERPRINTS)
    for at, step in enumerate([*(("event", f, 1) for f in FINGERPRINTS), *history]):
        what, fingerprint, more = step
        ask(world, step, at)
        await worked(world, luck)
        root = home[fingerprint]
        if what == "event":
            counts[fingerprint] += more
            known.add(fingerprint)
        elif what == "merge":
            # An issue that is a part of another one says so; a part must be asked for by its whole.
            joining = {one for one in more if home[one] == one and one != root}
            home |= {f: root for f, of in home.items() if of in joining}
            known |= more
        else:
            home |= {f: f for f, of in home.items() if of == root and f != root and f in more and counts[f]}
        for one in sorted(known) if at >= len(FINGERPRINTS) else ():
            issue = world.issue(one)
            if home[one] != one:
                assert issue.merged_into == id_of(home[one])
                assert issue.events == counts[one]
                continue
            parts = [f for f, of in home.items() if of == one]
            assert issue.merged_into is None
            assert set(issue.fingerprints) == set(map(hex64, parts))
            assert issue.events == issue.users == sum(counts[f] for f in parts)
            assert not issue.life.pending


@given(steps, st.integers(0, 1 << 32))
@example([("merge", 1, {2}), ("unmerge", 2, {1}), ("merge", 3, {1})], 0)
async def test_issues_that_were_lost_are_built_again_from_the_log_as_they_were(
    history: list[tuple[Any, ...]], seed: int
) -> None:
    world, luck = World(), random.Random(seed)
    for at, step in enumerate([*(("event", f, 1) for f in FINGERPRINTS), *history]):
        ask(world, step, at)
        await worked(world, luck)
    known = [f for f in ALL if world.knows(f)]
    before, description = [world.issue(f) for f in known], world.activities()
    world.lose()
    await world.settle(limit=luck.randrange(1, 9))
    for was in before:
        now = next(one for one in map(world.issue, known) if one.id == was.id)
        for field in ("events", "users", "fingerprints", "merged_into", "status", "releases"):
            assert getattr(now, field) == getattr(was, field), field
    assert world.activities() == description


@given(steps, st.integers(0, 1 << 32))
async def test_nothing_is_lost_or_shown_twice_when_all_happens_together(
    history: list[tuple[Any, ...]], seed: int
) -> None:
    world, luck = World(), random.Random(seed)
    for at, step in enumerate([*(("event", f, 1) for f in FINGERPRINTS), *history]):
        ask(world, step, at)
        if at == len(FINGERPRINTS):
            await worked(world, luck)
    await worked(world, luck)
    counts: Counter[int] = Counter(dict.fromkeys(FINGERPRINTS, 1))
    for what, fingerprint, more in history:
        counts[fingerprint] += more if what == "event" else 0
    issues = {f: world.issue(f) for f in ALL if world.knows(f)}
    shown = {f: issue for f, issue in issues.items() if issue.merged_into is None}
    assert sorted(name for issue in shown.values() for name in issue.fingerprints) == sorted(
        map(hex64, issues)
    )
    for issue in shown.values():
        assert issue.events == issue.users == sum(counts[f] for f in ALL if hex64(f) in issue.fingerprints)
        assert not issue.life.pending
        assert START <= issue.first_seen_ms <= issue.last_seen_ms
    for fingerprint, issue in issues.items():
        if issue.merged_into is not None:
            assert issue.events == counts[fingerprint]
    assert sum(issue.events for issue in shown.values()) == sum(counts.values())
