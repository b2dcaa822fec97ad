"""Increments of a source record: a function of the record, whatever the order of its events."""

from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.event_outline import decode_event, grouping_event
from processors.grouper.fingerprinter import MAX_TEXT, Fingerprinter
from processors.grouper.record_counts import Increments
from schemas.chunks import ChunkEvent
from schemas.ids import user_hash
from schemas.increments import Increment, decode_description
from schemas.projects import ProjectRegistry
from tests.unit.processors.made import DAY, HOUR, START, carried, event_id

grouper = Fingerprinter(ProjectRegistry())


def counted(events: list[ChunkEvent]) -> list[Increment]:
    increments = Increments(lambda *_: "")
    for one in events:
        event, found = grouper.group(one)
        increments.count_event(one, event, found, found.fingerprint)
    return increments.finish()


made = st.builds(
    lambda number, kind, user, ms: carried(number, kind=kind, user=user, ms=START + ms),
    st.integers(0, 1000),
    st.integers(0, 2),
    st.sampled_from(["", "a", "b"]),
    st.integers(0, 3 * HOUR),
)


@given(st.lists(made, min_size=1, max_size=10, unique_by=lambda one: one.id), st.randoms())
def test_the_order_of_events_in_a_record_does_not_matter(events: list[ChunkEvent], luck: object) -> None:
    mixed = list(events)
    luck.shuffle(mixed)  # type: ignore[attr-defined]
    by_fingerprint = {one.fingerprint: one for one in counted(events)}
    assert {one.fingerprint: one for one in counted(mixed)} == by_fingerprint


def test_each_fingerprint_of_each_project_has_its_own_increment() -> None:
    found = counted([carried(1), carried(2, kind=1), carried(3), carried(4, project=2)])
    assert [(one.project, one.events) for one in found] == [(1, 2), (1, 1), (2, 1)]


def test_users_are_kept_as_hashes_and_once() -> None:
    [one] = counted([carried(1, user="ann"), carried(2, user="ann"), carried(3)])
    assert one.users == [user_hash(1, "ann")]


def test_the_newest_event_describes_the_increment_and_the_oldest_gives_the_first_release() -> None:
    [one] = counted([carried(1, ms=START + 5), carried(2, ms=START)])
    assert one.last_event == event_id(1, START + 5)
    assert (one.first_ms, one.last_ms, one.first_release) == (START, START + 5, "shop@1.0+1")


def test_a_lying_clock_counts_as_the_time_of_receipt() -> None:
    honest = carried(1)
    late = ChunkEvent(1, honest.id, START + 40 * DAY, honest.sdk, honest.payload)
    [one] = counted([late])
    assert one.first_ms == START + 40 * DAY


def test_a_long_message_is_cut() -> None:
    body = carried(1).payload.replace(b"it broke", b"x" * 5000)
    assert len(grouping_event(decode_event(body)).error.message or "") == 5000
    [one] = counted([ChunkEvent(1, event_id(1), START, "test/1", body)])
    assert len(decode_description(one.description).message) == MAX_TEXT
