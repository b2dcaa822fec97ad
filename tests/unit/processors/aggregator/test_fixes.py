"""A fix in the next release: releases known then, or older, don't regress."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.aggregator.lifecycle import MAX_OLDER, fix_in, regresses
from schemas.changes import NEXT
from schemas.release_order import compare

releases = st.builds(
    "{}@{}+{}".format,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["1.0.0", "2.0.0", "2.0.0-rc.1", "blue"]),
    st.sampled_from(["1", "3", "7", "07", "10", "abc", "abd", "7c"]),
)


@given(st.lists(releases, max_size=20, unique=True))
def test_a_release_known_at_the_time_never_regresses(known: list[str]) -> None:
    fix = fix_in(NEXT, known)
    assert [name for name in known if regresses(fix, name)] == []


@given(st.lists(releases, max_size=20, unique=True), releases)
def test_a_release_below_a_known_one_of_its_kind_never_regresses(known: list[str], release: str) -> None:
    below = any((order := compare(release, name)) is not None and order <= 0 for name in known)
    assert not (below and regresses(fix_in(NEXT, known), release))


@given(st.lists(releases, max_size=20, unique=True), releases)
def test_a_release_that_no_known_one_tells_about_regresses(known: list[str], release: str) -> None:
    above = all((order := compare(release, name)) is None or order > 0 for name in known)
    assert regresses(fix_in(NEXT, known), release) or not above


@pytest.mark.parametrize("known", [["a@2.0.0+7", "a@2.0.0+abc"], ["a@2.0.0+abc", "a@2.0.0+7"]])
def test_numbered_and_other_builds_of_one_version_are_both_remembered(known: list[str]) -> None:
    fix = fix_in(NEXT, known)
    assert [regresses(fix, f"a@2.0.0+{build}") for build in ("3", "7", "abc", "8", "abd")] == [
        *(False, False, False),
        *(True, True),
    ]


def test_a_fix_in_a_release_knows_the_releases_older_than_one_before_it() -> None:
    fix = fix_in("a@2.0.0+abc", ["a@2.0.0+7", "a@2.0.0+abc"])
    assert [regresses(fix, f"a@2.0.0+{build}") for build in ("3", "7", "8")] == [False, False, True]


def test_remembered_builds_are_bounded_and_numbers_take_one_place() -> None:
    others = [f"a@2.0.0+x{number}" for number in range(2 * MAX_OLDER)]
    fix = fix_in("a@2.0.0+last", [*(f"a@2.0.0+{number}" for number in range(900)), *others[:400]])
    assert len(fix.older) == 401
    assert not regresses(fix, "a@2.0.0+12")
    assert len(fix_in(NEXT, others).older) == MAX_OLDER


@pytest.mark.parametrize(
    ("resolved_in", "known", "release", "does"),
    [
        ("a@388.0+388.0.8", ["a@388.0+388.0.8"], "a@388.0+388.0.6", False),
        (NEXT, ["a@2.0.0+2.0.0.9", "a@2.0.0+2.0.0.10"], "a@2.0.0+2.0.0.8", False),
        (NEXT, ["a@2.0.0+2.0.0.9", "a@2.0.0+2.0.0.10"], "a@2.0.0+2.0.0.11", True),
        ("a@2.0.0rc2+1", ["a@2.0.0rc2+1"], "a@1.9.0+1", False),
        ("a@2.0.0+1", ["a@2.0.0+1"], "a@2.0.0rc1+1", False),
        ("a@1.2.3.4.6+1", ["a@1.2.3.4.6+1"], "a@1.2.3.4.4+1", False),
        (NEXT, ["a@9f8e7d6+1", "a@8214563+1", "a@0a1b2c3+1"], "a@1234567+1", True),
        (NEXT, ["a@9f8e7d6+1", "a@8214563+1", "a@0a1b2c3+1"], "a@8214563+1", False),
        ("a@8214563+1", ["a@8214563+1"], "a@1234567+1", True),
    ],
)
def test_names_of_the_field_regress_as_people_expect(
    resolved_in: str, known: list[str], release: str, *, does: bool
) -> None:
    assert regresses(fix_in(resolved_in, known), release) is does
