"""What joins and splits when a project is grouped otherwise."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.regrouping import MAX_FINGERPRINTS, Gathering, Known, RegroupPlan, SplitOff, plan
from schemas.ids import issue_id

PROJECT = 7
A, B, C = (issue_id(PROJECT, number) for number in (1, 2, 3))
PRESENT = {A: (1,), B: (2,), C: (3,)}


def planned(
    counts: dict[tuple[int, int], int], present: Mapping[int, tuple[int, ...]] = PRESENT
) -> RegroupPlan:
    return plan(PROJECT, counts, Known.of(present.items()))


def test_an_issue_that_keeps_its_events_together_gets_the_new_fingerprint() -> None:
    found = planned({(A, 11): 5})
    assert found.gatherings == [Gathering(A, (), (11,))]
    assert (found.issue_of, found.joined, found.splits) == ({11: A}, {}, [])


def test_issues_whose_events_get_one_fingerprint_join_the_largest() -> None:
    found = planned({(A, 11): 2, (B, 11): 5, (C, 11): 1})
    assert found.gatherings == [Gathering(B, (A, C), (11,))]
    assert found.joined == {A: B, C: B}
    assert found.issue_of == {11: B}


def test_what_most_of_an_issue_is_not_splits_off() -> None:
    found = planned({(A, 11): 5, (A, 12): 3, (A, 13): 1})
    assert found.gatherings == [Gathering(A, (), (11,))]
    assert found.splits == [
        SplitOff(A, issue_id(PROJECT, 12), 3, is_new=True),
        SplitOff(A, issue_id(PROJECT, 13), 1, is_new=True),
    ]


def test_an_issue_of_many_problems_joins_only_the_one_that_it_mostly_is() -> None:
    found = planned({(A, 11): 5, (A, 12): 4, (A, 13): 4, (B, 12): 2, (C, 13): 9})
    assert found.joined == {}
    assert found.splits == [SplitOff(A, other, 4, is_new=False) for other in sorted((B, C))]


def test_a_fingerprint_that_an_issue_has_already_gathers_there() -> None:
    found = planned({(A, 3): 100, (C, 3): 1})
    assert found.gatherings == [Gathering(C, (A,), ())]
    assert found.issue_of == {3: C}


def test_an_issue_where_others_join_is_not_merged_into_a_third() -> None:
    found = planned({(A, 3): 1, (C, 11): 1, (B, 11): 5})
    assert found.joined == {A: C}


def test_an_issue_has_no_more_fingerprints_than_the_processors_allow() -> None:
    present = {issue_id(PROJECT, n): (n,) for n in range(1, 200)}
    found = planned(dict.fromkeys([(issue, 999) for issue in present], 1), present)
    (gathering,) = found.gatherings
    assert 1 + len(gathering.issues) + len(gathering.fingerprints) == MAX_FINGERPRINTS
    full = {A: tuple(range(1, MAX_FINGERPRINTS + 1))}
    assert planned({(A, 999): 1}, full).gatherings == []
    assert planned({(A, 999): 1}, full).issue_of == {999: issue_id(PROJECT, 999)}


def issues(*fingerprints: int) -> st.SearchStrategy[dict[tuple[int, int], int]]:
    """Events by issue and new fingerprint."""
    return st.dictionaries(
        st.tuples(st.integers(1, 8), st.sampled_from(fingerprints)),
        st.integers(1, 5),
        min_size=1,
        max_size=20,
    )


@settings(max_examples=300, deadline=None)
@given(issues(*range(100, 114)), st.data())
def test_what_is_left_after_a_part_was_done_is_the_rest_of_the_plan(
    given_counts: dict[tuple[int, int], int], data: st.DataObject
) -> None:
    counts = {(issue_id(PROJECT, n), fingerprint): c for (n, fingerprint), c in given_counts.items()}
    present = {issue_id(PROJECT, n): (n,) for n, _ in given_counts}
    whole = planned(counts, present)
    done = data.draw(st.sets(st.sampled_from(whole.gatherings))) if whole.gatherings else set()
    after: dict[int, tuple[int, ...]] = dict(present)
    now = Counter[tuple[int, int]]()
    for gathering in done:
        others = [one for issue in gathering.issues for one in after.pop(issue)]
        after[gathering.issue] = (*after[gathering.issue], *others, *gathering.fingerprints)
    moved = {issue: gathering.issue for gathering in done for issue in gathering.issues}
    for (issue, fingerprint), count in counts.items():
        now[moved.get(issue, issue), fingerprint] += count
    rest = planned(now, after)
    assert rest.issue_of == whole.issue_of
    assert {*rest.gatherings} == {*whole.gatherings} - done


@settings(max_examples=300, deadline=None)
@given(issues(*range(1, 14)))
def test_every_event_is_in_one_issue_and_most_of_an_issue_stays_in_it(
    given_counts: dict[tuple[int, int], int],
) -> None:
    counts = {(issue_id(PROJECT, n), fingerprint): c for (n, fingerprint), c in given_counts.items()}
    present = {issue_id(PROJECT, n): (n,) for n, _ in given_counts}
    found = planned(counts, present)
    assert not found.joined.keys() & set(found.joined.values())
    assert set(found.issue_of) == {fingerprint for _, fingerprint in counts}
    assert not found.joined.keys() & set(found.issue_of.values())
