"""The fold: insensitive to repetition, and to where the log is read again from."""

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from processors.aggregator.findings import MAX_NAMES, created_activity
from processors.aggregator.issue_fold import Fold
from processors.aggregator.totals import HOURS, Users
from schemas.ids import issue_id, user_hash
from schemas.increments import Description, Increment, Row, encode_description
from schemas.issues import IssueRecord, decode_issue, encode_json
from tests.unit.processors.made import event_id

START = 1_790_000_000_000


def increment(
    events: int = 1, ms: int = START, release: str = "a@1+1", users: tuple[int, ...] = (), event: int = 0
) -> Increment:
    description = Description("E", f"m{event}", "f", "v1", "stack", ("p",))
    return Increment(
        issue=issue_id(1, 2),
        project=1,
        fingerprint=2,
        events=events,
        first_ms=ms,
        last_ms=ms,
        received_ms=ms,
        last_event=event_id(event),
        first_release=release,
        last_release=release,
        rows=[Row(release, "prod", "ios", ms // 3_600_000, events)],
        users=list(users),
        description=Raw(encode_description(description)),
    )


def folded(log: list[tuple[int, int, Increment]], start: IssueRecord | None = None) -> IssueRecord:
    fold = Fold.restore(encode_json(start)) if start else Fold.new(log[0][2], 0)
    for partition, offset, one in log:
        fold.add_increment(partition, offset, one)
    return fold.record()


made = st.builds(
    increment,
    st.integers(1, 5),
    st.integers(START, START + 40 * 86_400_000),
    st.sampled_from(["a@1+1", "a@2+1", "a@3+1"]),
    st.lists(st.integers(1, (1 << 64) - 1), max_size=3).map(tuple),
    st.integers(0, 9999),
)


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, int, Increment]]:
    """Increments of two source partitions, each in its order, interleaved in any way."""
    queues = [[(p, offset, draw(made)) for offset in range(draw(st.integers(0, 8)))] for p in range(2)]
    log = []
    while any(queues):
        queue = draw(st.sampled_from([q for q in queues if q]))
        log.append(queue.pop(0))
    return log


@given(logs().filter(bool), st.data())
def test_repeats_change_nothing(log: list[tuple[int, int, Increment]], data: st.DataObject) -> None:
    once = folded(log)
    back = data.draw(st.integers(0, len(log)))
    assert folded(log + log[back:]) == once
    assert folded(log[back:], once) == once


@given(logs().filter(bool), st.integers(0, 16))
def test_a_state_that_was_written_and_read_continues_the_same(
    log: list[tuple[int, int, Increment]], cut: int
) -> None:
    halfway = decode_issue(encode_json(folded(log[:cut] or log[:1])))
    # A sketch that was read back counts the same users and may arrange them otherwise.
    assert replace(folded(log, halfway), users_sketch="") == replace(folded(log), users_sketch="")


@given(logs().filter(lambda log: len(log) > 1))
def test_counts_do_not_depend_on_the_order_of_source_partitions(
    log: list[tuple[int, int, Increment]],
) -> None:
    ordered = sorted(log, key=lambda one: one[0])
    one, other = folded(log), folded(ordered)
    for field in (
        "events", "first_seen_ms", "last_seen_ms", "releases", "platforms", "environments", "hours", "first_release",
        "version", "positions", "received_ms",
    ):  # fmt: skip
        assert getattr(one, field) == getattr(other, field), field


def test_of_events_at_the_same_time_the_greater_id_describes_the_issue() -> None:
    log = [(0, n, increment(event=event)) for n, event in enumerate((2, 3, 1))]
    assert folded(log).message == "m3"
    assert folded(log[2:], folded(log[:2])).message == "m3"


def test_first_and_last_release_go_by_event_time() -> None:
    issue = folded(
        [(0, 0, increment(ms=START + 5, release="a@2+1")), (0, 1, increment(ms=START, release="a@1+1"))]
    )
    assert (issue.first_release, issue.last_release) == ("a@1+1", "a@2+1")


def test_releases_are_bounded_and_the_first_and_last_stay() -> None:
    log = [(0, n, increment(ms=START + n, release=f"a@{n}+1")) for n in range(MAX_NAMES + 30)]
    issue = folded(log)
    assert len(issue.releases) == MAX_NAMES
    assert {"a@0+1", f"a@{MAX_NAMES + 29}+1"} <= set(issue.releases)


def test_hours_are_those_before_the_newest_event() -> None:
    log = [(0, n, increment(ms=START + n * 3_600_000)) for n in range(HOURS + 50)]
    assert len(folded(log).hours) == HOURS


def test_thousands_of_users_are_estimated_within_six_per_cent() -> None:
    users = Users()
    users.add(user_hash(1, str(n)) for n in range(20_000))
    assert abs(Users(users.text()).count - 20_000) < 1200


def test_the_creation_of_an_issue_has_one_id_however_often_it_is_reported() -> None:
    record = Fold.new(increment(), 0).state
    assert created_activity(record, increment()).id == created_activity(record, increment(ms=START + 5)).id


def test_ten_thousand_increments_of_a_hot_issue_keep_its_state_small() -> None:
    luck = random.Random(1)
    fold = Fold.new(increment(), 0)
    for n in range(10_000):
        one = increment(ms=START + n * 60_000, release=f"a@{n % 500}+1", users=(luck.getrandbits(64) or 1,))
        one.rows[0].environment = f"e{n % 300}"
        fold.add_increment(0, n, one)
    assert len(encode_json(fold.record())) < 20_000
