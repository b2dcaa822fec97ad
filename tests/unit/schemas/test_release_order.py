"""The order of releases: as people expect it, never that of strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.release_order import compare, newest_by_app

ASCENDING = [
    "shop@0.9+9",
    "shop@1.0.0.dev3+1",
    "shop@1.0.0-alpha+1",
    "shop@1.0.0-alpha.1+1",
    "shop@1.0.0a2.dev1+1",
    "shop@1.0.0a2+1",
    "shop@1.0.0-alpha.beta+1",
    "shop@1.0.0-beta.2+1",
    "shop@1.0.0-beta.11+1",
    "shop@1.0.0-rc.1+1",
    "shop@1.0.0rc2+1",
    "shop@1.0.0RC10+1",
    "shop@1.0.0.rc10.post1+1",
    "shop@1.0.0+1",
    "shop@1.0.0+2",
    "shop@1.0.0+10",
    "shop@1.0.0+10.0.6",
    "shop@1.0.0+10.0.10",
    "shop@1.0.0.post1.dev2+1",
    "shop@1.0.0.post1+1",
    "shop@1.0.0.post2+1",
    "shop@1.2.3.4.4+1",
    "shop@1.2.3.4.6+1",
    "shop@1.9.0+9",
    "shop@1.10.0+2",
    "shop@1.10.0.1+1",
    "shop@2+1",
    "shop@v1234567+1",
    "shop@20260131+1",
    "shop@20260201+1",
    "shop@20260201120000+1",
]


@pytest.mark.parametrize("older", range(len(ASCENDING)), ids=ASCENDING)
def test_releases_of_one_app_are_ordered_by_version_then_build(older: int) -> None:
    for newer, release in enumerate(ASCENDING):
        found = compare(ASCENDING[older], release)
        assert found is not None, release
        assert (found > 0) - (found < 0) == (older > newer) - (older < newer), release


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("shop@1.0.0+1", "till@2.0.0+1"),
        ("shop@blue+1", "shop@green+1"),
        ("shop@1.0.0+a", "shop@1.0.0+b"),
        ("nightly", "shop@1.0.0+1"),
        ("shop@8214563+1", "shop@1234567+1"),
        ("shop@1234567+1", "shop@1.0.0+1"),
        ("shop@12345a7+1", "shop@1234567+1"),
        ("shop@1.0.0.0.0.0.0.0.0.0.0+1", "shop@1.0.0+1"),
        ("shop@1.٣+1", "shop@1.0.0+1"),
    ],
)
def test_names_that_do_not_tell_have_no_order(one: str, other: str) -> None:
    assert compare(one, other) is None
    assert compare(one, one) == 0


def test_a_scoped_app_and_missing_numbers_are_understood() -> None:
    assert compare("@acme/shop@1.2+3", "@acme/shop@1.2.0.0.0+3.0") == 0
    assert compare("shop@2.0.0rc2+1", "shop@2.0.0-rc.2+1") == 0
    assert compare("shop@v1.2.0+3", "shop@1.2.1+3") == -1
    assert compare("@acme/shop@1.2.0+3@b", "@acme/shop@1.3.0+3@a") == -1


def test_the_newest_of_each_app_is_found_whatever_their_order() -> None:
    names = ["till@3.0+1", "shop@1.10.0+1", "shop@1.9.0+1", "till@2.0+1", "odd", "shop@1.10.0+0"]
    assert set(newest_by_app(names)) == {"shop@1.10.0+1", "till@3.0+1"}


names = st.builds(
    "{}@{}+{}".format,
    st.sampled_from(["a", "b"]),
    st.from_regex(r"\A[0-3](\.[0-3]){0,2}(-[a-b0-2]|(a1|rc2)?(\.post1)?(\.dev[01])?)?\Z"),
    st.sampled_from(["1", "2", "10", "1.0", "1.0.2", "x", ""]),
)


@given(names, names, names)
def test_the_order_has_no_cycles(a: str, b: str, c: str) -> None:
    forth, back = compare(a, b), compare(b, a)
    assert (forth is None) == (back is None)
    if forth is not None and back is not None:
        assert (forth > 0) == (back < 0)
    onward = compare(b, c)
    if forth is not None and onward is not None and forth >= 0 and onward >= 0:
        across = compare(a, c)
        assert across is None or across >= 0


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_a_release_that_equals_itself(one: str, other: str) -> None:
    assert compare(one, one) == 0
    compare(one, other)
