"""The plan of a seed: events of clients, operations, and faults with their times.

Everything is planned at the start, one entry after another with separate chances, so that a part of a plan is a
plan too.

A seed is a number, and steps that change its plan: `17.3.5000` is the plan of 17 with the story 3, varied by the
number 5000. So each seed repeats alone, independent of the run that drew it (`tests.simulation.draws`).
"""

from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tests.simulation.clickhouse_tables import WINDOW

POINTS: Final = tuple(
    f"at {point}"
    for point in (
        *(
            "spooling",
            "drain",
            "removal",
            "decision",
            "increments",
            "compaction",
            "restoring",
            "fold",
            "insert",
        ),
        *("second insert", "commit", "completion"),
    )
)
"""Where faults strike that wait for a process to come there: see `tests.simulation.aims`."""
LATER_POINTS: Final = (
    *("kill at decision", "sleep at decision", "sleep at activities", "loss at increments", "torn insert"),
    *("kill in a slow insert", "kill in a slow completion", "death in a completion", "late commit"),
    *("frozen before an insert", "lost answer"),
)
AIMED: Final = (*POINTS, *LATER_POINTS)

_FAULTS: Final = (
    *("kill", "kill", "step", "step", "step", "freeze", "freeze", "cut", "broker", "broker", "clickhouse"),
    *("slow", "twin", "twin", "sleep", "clock", "full", "power", "bit", "compaction", "refusal"),
    *("part", "part", "part", "retention", "retention", "garbage"),
)
_STORIES: Final = (
    (("all", 0.0), ("merge", 1.5), ("post", 3.0), ("unmerge", 4.0), ("post", 5.0)),
    (("all", 0.0), ("merge", 1.5), ("merge", 2.5), ("post", 3.5), ("unmerge", 4.5)),
    (("all", 0.0), ("cross", 1.5), ("post", 2.0), ("unmerge", 4.0)),
    (("all", 0.0), ("resolve", 1.5), ("all", 3.0), ("post", 4.0)),
    (("all", 0.0), ("ignore", 1.5), ("all", 3.0), ("all", 4.0)),
    (("post", 0.0), ("broker", 0.5), ("at drain", 0.6), ("post", 0.8), ("post", 1.2)),
    (("post", 0.0), ("broker", 0.5), ("at removal", 0.6), ("post", 0.8)),
    (("post", 0.0), ("broker", 0.5), ("at spooling", 0.6), ("post", 0.8)),
    (("post", 0.0), ("clickhouse", 0.5), ("at completion", 0.6), ("post", 0.7)),
    (("post", 0.0), ("at second insert", 0.2), ("at insert", 0.4), ("post", 0.5), ("post", 2.0)),
    (("post", 0.0), ("lost", 2.5), ("post", 3.0)),
)
_DAYS: Final = (("post", 0.0), ("days", 0.5))
"""Entries that belong together, in this order: one alone would meet nothing."""
COMMANDS: Final = ("change", "change", "project", "repair", "replay", "erase", "rebuild")


CHANGES: Final = ("merge", "unmerge", "cross", "resolve", "ignore", "limit", "member")
"""Changes of a certain kind, in stories."""
_Story = tuple[tuple[str, float], ...]
_PAIR: Final = {"workers": 2, "writers": 2, "partitions": 2, "late": 0.0, "is_repaired": True}
_ONE: Final = _PAIR | {"partitions": 1, "writers": 1}
_QUIET: Final = _PAIR | {"clumsy": 0.0}
_LOW: Final = _ONE | {"low": True, "narrow": False}
_LATE: Final = _ONE | {"late": 5.0}
_LATER: Final[tuple[tuple[dict[str, Any], _Story], ...]] = (
    # The rules of grouping change while a batch is in progress, or before lost records are decided again.
    ({}, (("all", 0.0), ("kill at decision", 0.9), ("rules", 0.95), ("all", 1.0), ("post", 3.0))),
    ({}, (("all", 0.0), ("at increments", 0.9), ("rules", 0.95), ("all", 1.0), ("post", 3.0))),
    (_LOW, (("all", 0.0), ("all", 0.7), ("all", 1.4), ("rules", 2.0), ("kill processors", 2.6), ("all", 4.0))),
    (_PAIR, (("all", 0.0), ("sleep at decision", 0.9), ("rules", 0.95), ("all", 1.0), ("post", 15.0),
             ("compaction", 45.0))),
    (_PAIR, (("all", 0.0), ("rules", 1.5), ("post", 2.5), ("lost seen", 3.5), ("post", 4.5))),
    # Tables of the processors lose something.
    (_PAIR, (("all", 0.0), ("all", 1.0), ("loss at increments", 1.9), ("all", 2.0), ("post", 4.0))),
    (_PAIR, (("post", 0.0), ("post", 0.7), ("all", 1.4), ("lost part", 2.5), ("post", 3.5))),
    (_PAIR, (("all", 0.0), ("post", 1.0), ("lost issues", 2.5), ("all", 3.5))),
    # Ids are forgotten, and unreadable events come again.
    (_LOW, (("post", 0.0), ("days", 0.5), ("post", 9.0))),
    (_LOW | {"days": 2}, (("post", 0.0), ("days", 0.5), ("post", 9.0))),
    ({}, (("spoilt", 0.0), ("post", 0.5), ("spoilt", 1.0))),
    # The disk of the edge.
    ({}, (("post", 0.0), ("broker", 0.5), ("full", 0.7), ("post", 0.8), ("post", 0.9), ("post", 1.2))),
    ({}, (("post", 0.0), ("broker", 0.5), ("post", 0.8), ("post", 1.0), ("post", 1.2), ("power", 1.3))),
    # Writers that are replaced in an insert, or whose insert is answered late.
    (_ONE, (("post", 0.0), ("kill in a slow insert", 0.9), ("post", 1.0), ("post", 1.4), ("post", 2.0))),
    (_ONE, (("post", 0.0), ("kill in a slow completion", 0.9), ("all", 1.0), ("refusal", 1.04), ("post", 8.0))),
    (_ONE, (("torn insert", 0.9), ("death in a completion", 0.95), ("all", 1.0), ("post", 8.0))),
    (_PAIR | {"window": 8}, (("lost answer", 0.9), ("all", 1.0), *(("post", 1.5 + n / 3) for n in range(15)))),
    (_PAIR, (("frozen before an insert", 0.9), ("post", 1.0), ("clickhouse", 2.0), ("post", 6.0))),
    (_LATE, (("late commit", 0.9), *(("post", 1.0 + n / 2) for n in range(5)), ("kill writers", 4.5))),
    (_ONE, (("post", 0.0), ("refusal", 0.04), ("post", 1.0), ("replay", 4.0), ("kill processors", 6.0))),
    (_PAIR, (("all", 0.0), ("erase", 2.0), ("post", 4.0), ("reset", 14.0), ("post", 15.0))),
    # Issues.
    ({}, (("all", 0.0), ("at fold", 0.9), ("all", 1.0), ("post", 2.0))),
    ({}, (("all", 0.0), ("limit", 1.5), ("all", 3.0), ("all", 4.0))),
    ({}, (("all", 0.0), ("merge", 1.5), ("member", 3.0), ("member", 3.5), ("post", 4.0))),
    (_PAIR, (("all", 0.0), ("merge", 1.5), ("sleep at activities", 3.4), ("all", 3.5), ("all", 16.0), ("post", 18.0))),
    # The second rebuild meets a merge that is under way.
    (
        _QUIET,
        (("all", 0.0), ("merge", 1.5), ("rebuild", 8.0), ("post", 12.0), ("merge", 20.0), ("rebuild", 20.02)),
    ),
    (_QUIET, (("all", 0.0), ("change", 1.5), ("change", 2.5), ("rebuild", 8.0), ("change", 12.0))),
)  # fmt: skip
"""Stories that were added later, with their requirements on the shape."""
_DEAD: Final = _QUIET | {"late": 0.0, "tiny": False}
_AHEAD: Final = _LOW | {"clumsy": 0.0, "days": 1}
_SLOW: Final = _PAIR | {"shards": 1}
STORIES: Final[tuple[tuple[dict[str, Any], _Story], ...]] = (
    *_LATER,
    *(({}, story) for story in _STORIES),
    # Input of a rebuild: merges and unmerges under way, erased events, statuses, ids of the future, old ones.
    (_QUIET, (("all", 0.0), ("merge", 1.5), ("unmerge", 5.0), ("rebuild", 5.05), ("post", 9.0))),
    (_QUIET, (("all", 0.0), ("merge", 1.5), ("merge", 4.0), ("rebuild", 4.05), ("all", 9.0))),
    (_QUIET, (("all", 0.0), ("cross", 1.5), ("unmerge", 4.5), ("rebuild", 4.55), ("rebuild", 14.0))),
    (_QUIET, (("all", 0.0), ("erase", 1.5), ("post", 4.0), ("rebuild", 12.0), ("all", 16.0))),
    (_QUIET, (("all", 0.0), ("resolve", 1.5), ("limit", 1.6), ("post", 3.0), ("rebuild", 8.0), ("all", 12.0))),
    (_QUIET, (("all", 0.0), ("ahead", 0.5), ("post", 1.0), ("rebuild", 5.0), ("again", 9.0), ("rebuild", 14.0),
              ("again", 18.0))),
    (_ONE, (("all", 0.0), ("merge", 1.5), ("at fold", 4.9), ("unmerge", 5.0), ("rebuild", 5.5), ("post", 9.0))),
    (_ONE, (("all", 0.0), ("merge", 1.5), ("unmerge", 5.0), ("at fold", 5.08), ("rebuild", 5.5), ("post", 9.0))),
    (_ONE, (("all", 0.0), ("at fold", 3.9), ("merge", 4.0), ("rebuild", 4.5), ("post", 9.0))),
    (_ONE, (("all", 0.0), ("merge", 4.0), ("at fold", 4.08), ("rebuild", 4.5), ("post", 9.0))),
    # Logs have expired, so that ids are in the table alone.
    (_PAIR | {"low": False}, (("all", 0.0), ("post", 0.5), ("retention", 3.0), ("kill processors", 3.5),
                              ("again", 6.0))),
    # Ids of the future, days that pass between them, and a restart.
    (_AHEAD, (("ahead", 0.0), ("post", 0.3), ("days", 0.6), ("ahead", 3.0), ("again", 6.0), ("again", 9.0))),
    (_AHEAD, (("ahead", 0.0), ("post", 0.3), ("days", 0.6), ("kill processors", 9.0), ("again", 11.0))),
    (_AHEAD, (("post", 0.0), ("ahead", 0.3), ("at compaction", 0.5), ("days", 0.6), ("lost part", 7.0),
              ("again", 9.0))),
    (_LOW | {"tiny": True}, (("post", 0.0), ("spoilt", 0.4), ("post", 1.0), ("kill processors", 3.0), ("again", 5.0))),
    # Refused rows: several of a record, put back, refused again, and put back twice.
    (_DEAD, (("all", 0.0), ("refusals", 0.04), ("post", 1.0), ("replay", 6.0))),
    (_DEAD | {"is_repaired": False}, (("all", 0.0), ("refusals", 0.04), ("post", 1.5), ("refusals", 1.54),
                                      ("replay", 6.0))),
    (_DEAD, (("post", 0.0), ("refusals", 0.04), ("post", 1.5), ("refusals", 1.54), ("replay", 5.0),
             ("kill writers", 5.3), ("replay", 9.0))),
    (_PAIR, (("all", 0.0), ("rules", 1.5), ("refusals", 1.6), ("all", 1.65), ("replay", 7.0), ("lost seen", 9.0))),
    (_DEAD, (("all", 0.0), ("refusals", 0.04), ("at commit", 0.1), ("post", 1.5), ("replay", 7.0))),
    (_PAIR, (("all", 0.0), ("rules", 1.5), ("post", 1.6), ("refusals", 1.64), ("replay", 5.0), ("kill processors", 5.4),
             ("loss at increments", 6.9), ("all", 7.0))),
    # Positions that are lost: small blocks are compared by their ids, also by a successor.
    (_ONE | {"tiny": True}, (("all", 0.0), ("all", 0.4), ("post", 0.8), ("all", 1.2), ("reset", 5.0), ("all", 6.0))),
    (_ONE | {"tiny": True}, (("all", 0.0), ("all", 0.4), ("all", 0.8), ("post", 1.2), ("reset", 5.0),
                             ("at commit", 5.3))),
    # Erasures during inserts, deaths and packs.
    (_PAIR, (("all", 0.0), ("all", 0.5), ("erase", 2.5), ("clickhouse", 3.0), ("all", 3.5), ("post", 5.0))),
    (_ONE, (("all", 0.0), ("kill in a slow insert", 0.5), ("all", 0.6), ("erase", 1.5), ("all", 2.0), ("step", 2.5))),
    # A slow server gets long sessions: their inserts are announced, and tables are compared meanwhile.
    (_SLOW, (("post", 0.0), ("lag", 0.8), ("all", 1.0), ("repair", 2.0), ("frozen before an insert", 3.0),
             ("all", 3.1))),
    (_SLOW, (("all", 0.0), ("lag", 1.0), ("erase", 1.5), ("all", 2.0), ("at insert", 2.5), ("all", 3.0))),
    (_PAIR | {"window": 8}, (("lost answer", 0.4), *(("post", 0.5 + n / 4) for n in range(12)), ("kill writers", 3.6))),
    # Events that an operator has restored twice.
    (_PAIR, (("all", 0.0), ("all", 0.5), ("twice", 3.0), ("post", 3.5))),
    # Decisions are read again whose events have expired.
    (_PAIR, (("all", 0.0), ("post", 0.5), ("retention", 4.0), ("reset", 6.0), ("post", 8.0))),
)  # fmt: skip
"""Additions to a plan by a seed's step, by number: a run draws those that reach seldom reached blocks."""
_VARIED: Final = 1 << 10
"""Steps from here on vary a plan."""
_LATER_SHARE: Final = 1 / 3
_SPREAD: Final[tuple[tuple[dict[str, Any], _Story], ...]] = (
    *(({}, ()),) * 4,
    # Ids that are forgotten are looked up; erasures, lost parts and torn inserts on one of the servers.
    (
        {"low": True, "narrow": False, "late": 0.0, "is_repaired": True},
        (("post", 0.0), ("post", 0.3), ("days", 0.5), ("post", 9.0)),
    ),
    ({"late": 0.0}, (("all", 0.0), ("erase", 2.0), ("all", 2.5), ("post", 4.0))),
    ({"is_repaired": True}, (("all", 0.0), ("part", 2.0), ("all", 2.5), ("repair", 4.0), ("post", 6.0))),
    ({}, (("post", 0.0), ("torn insert", 0.5), ("all", 0.6), ("at second insert", 0.7), ("post", 3.0))),
)
"""Entries for several ClickHouse servers, with their requirements on the shape."""
_SPREAD_SHARE: Final = 1 / 10
_REBUILT_SHARE: Final = 1 / 16
_CHANGED: Final = (
    *("merge", "merge", "merge", "unmerge", "unmerge", "cross", "change", "change", "member", "member"),
    *("resolve", "ignore", "limit", "post", "post", "all", "erase", "kill processors", "step", "twin"),
)
"""What happens before a rebuild: changes of few issues, close to each other."""
_MIXED_SHARE: Final = 0.4
_FEW: Final = 3
_SHAPES: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("tiny", (True, False)),
    ("window", (WINDOW, 8)),
    ("workers", (1, 2)),
    ("writers", (1, 2)),
    ("clumsy", (0.0, 0.02, 0.1)),
    ("short_payloads", (True, False)),
)
"""The fields of a shape that a variation may change."""


class Shape(Struct, frozen=True):
    """How large a schedule is, and how its servers are."""

    partitions: int
    workers: int
    writers: int
    window: int
    clumsy: float
    late: float
    seconds: float
    low: bool = False
    """Whether ids are forgotten after a day, and entries of `seen` are merged by twos."""
    is_repaired: bool = True
    """Whether, before the check, refusals end and all dead letters are replayed."""
    days: int = 1
    """For how many, where `low`."""
    tiny: bool = False
    """Whether chunks, batches, segments and blocks are full with few events, and little is cached."""
    narrow: bool = False
    """Whether some events are too large for Kafka."""
    short_payloads: bool = False
    """Whether a project's payloads are stored for less long than its events."""

    shards: int = 1
    """ClickHouse servers."""

    @property
    def is_spread(self) -> bool:
        """Whether events are on several ClickHouse servers."""
        return self.shards > 1


class Entry(Struct, frozen=True):
    """Something that happens at a time."""

    at: float
    what: str
    seed: int


Plan = tuple[Shape, list[Entry]]
Seed = int | str


def seeded(text: str) -> Seed:
    """A seed as it is printed."""
    return int(text) if text.isdecimal() else text


def with_story(seed: Seed, number: int) -> Seed:
    """A seed whose plan has an additional story."""
    return f"{seed}.{number}"


def varied(seed: Seed, random: Random) -> Seed:
    """A seed whose plan differs a little."""
    return f"{seed}.{random.randrange(_VARIED, _VARIED << 20)}"


def step(plan: Plan, seed: str) -> Plan:
    """A plan after the last step of a seed."""
    number, random = int(seed.rpartition(".")[2]), Random(seed)
    return _with(random, plan, *STORIES[number]) if number < len(STORIES) else _vary(random, plan)


def _with(random: Random, plan: Plan, needs: dict[str, Any], story: _Story) -> Plan:
    shape, entries = plan
    at = random.uniform(0.0, 0.5)
    more = [
        Entry(at + after + random.uniform(0.0, 0.04), what, random.getrandbits(32)) for what, after in story
    ]
    shape = replace(shape, **needs, seconds=max(shape.seconds, more[-1].at))
    kept = entries if random.random() < _MIXED_SHARE else []
    return shape, sorted([*more, *kept], key=lambda entry: entry.at)


def _vary(random: Random, plan: Plan) -> Plan:
    shape, entries = plan[0], list(plan[1])
    for _ in range(random.choice((1, 2, 3))):
        at = random.randrange(len(entries))
        entry = entries[at]
        match random.choice(("seed", "move", "more", "more", "again", "drop", "shape")):
            case "seed":
                entries[at] = replace(entry, seed=random.getrandbits(32))
            case "move":
                entries[at] = replace(entry, at=max(0.0, entry.at + random.uniform(-1.0, 1.0)))
            case "more":
                kind = random.choice((*_FAULTS, *AIMED, *COMMANDS))
                entries.append(
                    Entry(max(0.0, entry.at + random.uniform(-0.2, 0.5)), kind, random.getrandbits(32))
                )
            case "again":
                entries.append(
                    replace(entry, at=entry.at + random.uniform(0.5, 3.0), seed=random.getrandbits(32))
                )
            case "drop" if len(entries) > _FEW:
                del entries[at]
            case "shape":
                name, values = random.choice(_SHAPES)
                shape = replace(shape, **{name: random.choice(values)})
    seconds = max(shape.seconds, *(entry.at for entry in entries))
    return replace(shape, seconds=seconds), sorted(entries, key=lambda entry: entry.at)


def plan(seed: int) -> Plan:
    """The plan of a number."""
    random = Random(seed)
    late = random.random() < 0.2
    shape = Shape(
        partitions=random.choice((1, 1, 2)),
        workers=random.choice((1, 1, 2)),
        writers=random.choice((1, 1, 2)),
        window=random.choice((WINDOW, WINDOW, 8)),
        clumsy=random.choice((0.05, 0.2)) if late else random.choice((0.0, 0.0, 0.02, 0.1)),
        late=random.choice((5.0, 30.0)) if late else 0.0,
        seconds=random.uniform(1.0, 8.0),
        low=random.random() < 0.3,
    )
    kinds = [
        *["post"] * random.randint(1, 4),
        *random.choices(_FAULTS, k=random.randint(1, 4)),
        *random.choices(COMMANDS, k=random.randint(0, 2)),
    ]
    entries = [
        Entry(random.uniform(0.0, shape.seconds + 2.0 * (kind != "post")), kind, random.getrandbits(32))
        for kind in kinds
    ]
    if random.random() < 0.4:
        entries += _story(random, shape)
    elif random.random() < 0.3:
        entries.append(
            Entry(random.uniform(0.0, shape.seconds), random.choice(POINTS), random.getrandbits(32))
        )
    shape = replace(shape, is_repaired=random.random() < 0.7)
    shape, entries = _more(Random(f"more of {seed}"), shape, sorted(entries, key=lambda entry: entry.at))
    shape, entries = _rebuilt(Random(f"rebuilds of {seed}"), shape, entries)
    return _spread(Random(f"servers of {seed}"), shape, entries)


def _more(random: Random, shape: Shape, entries: list[Entry]) -> Plan:
    """Later additions, drawn separately: most seeds keep their former plans."""
    if random.random() > _LATER_SHARE:
        return shape, entries
    is_alone = random.random() < 0.6
    shape = replace(
        shape, tiny=random.random() < 0.4, narrow=random.random() < 0.2, short_payloads=random.random() < 0.5
    )
    needs, story = random.choice(_LATER)
    at = random.uniform(0.0, 0.5)
    more = [
        Entry(at + after + random.uniform(0.0, 0.04), what, random.getrandbits(32)) for what, after in story
    ]
    shape = replace(shape, **needs, seconds=max(shape.seconds, more[-1].at))
    return shape, sorted([*more, *([] if is_alone else entries)], key=lambda entry: entry.at)


def _rebuilt(random: Random, shape: Shape, entries: list[Entry]) -> Plan:
    """Instead of the entries, changes of issues and one to three rebuilds, of which some meet changes under way."""
    if random.random() > _REBUILT_SHARE:
        return shape, entries
    planned, at = [("all", random.uniform(0.0, 0.3))], 1.5
    for _ in range(random.randint(3, 9)):
        at += random.choice((0.02, 0.05, 0.3, 1.0, 2.0)) * random.random()
        planned.append((random.choice(_CHANGED), at))
    for _ in range(random.randint(1, 3)):
        at += random.choice((0.02, 0.05, 0.3, 1.0, 6.0, 10.0))
        planned.append(("rebuild", at))
        for _ in range(random.randint(0, 2)):
            at += random.choice((0.01, 0.05, 1.0, 4.0, 9.0))
            planned.append((random.choice(_CHANGED), at))
    shape = replace(shape, **_PAIR, clumsy=random.choice((0.0, 0.0, 0.02)), narrow=False, seconds=at)
    return shape, [Entry(at, what, random.getrandbits(32)) for what, at in planned]


def _spread(random: Random, shape: Shape, entries: list[Entry]) -> Plan:
    """Several ClickHouse servers, of which one dies, freezes or lags; drawn apart, too."""
    if random.random() > _SPREAD_SHARE:
        return shape, entries
    shards = random.choice((2, 2, 3))
    shape = replace(shape, shards=shards, partitions=random.choice((shards, shards + 1)))
    needs, story = random.choice(_SPREAD)
    if story and random.random() < 0.5:
        entries = []
    shape = replace(shape, **needs, seconds=max(shape.seconds, *(at for _, at in story), 0.0))
    faults = random.choices(("clickhouse", "slow", "lag"), k=random.randint(0, 2))
    planned = (*story, *((fault, random.uniform(0.0, shape.seconds)) for fault in faults))
    more = [Entry(at + random.uniform(0.0, 0.3), what, random.getrandbits(32)) for what, at in planned]
    return shape, sorted([*entries, *more], key=lambda entry: entry.at)


def _story(random: Random, shape: Shape) -> list[Entry]:
    story = _DAYS if shape.low and random.random() < 0.5 else random.choice(_STORIES)
    at, scale = random.uniform(0.0, 1.0), random.choice((0.5, 1.0))
    return [
        Entry(at + scale * after + random.uniform(0.0, 0.3), what, random.getrandbits(32))
        for what, after in story
    ]
