"""What a page says of two stacks that are not one for sure."""

from dashboard.view.likeness import difference
from tests.unit.grouping.test_alike import BASE, traced

NAMELESS = ("session.js", *BASE[1:])


def test_common_frames_and_those_of_one_side_are_named() -> None:
    assert difference(traced(*BASE), traced(*NAMELESS)) == (
        "Same fault; both route, receive, loop; only here onTyping; only there <anonymous> in session.js"
    )


def test_long_lists_are_cut() -> None:
    many = traced(*(f"f{name} a.js" for name in "abcde"))
    assert difference(many, many) == "Same fault; both fa, fb, fc and 2 more"


def test_nothing_is_said_of_errors_that_differ_in_their_fault_or_have_no_own_frames() -> None:
    assert difference(traced(*BASE), traced(*BASE, message="another")) == ""
    assert difference(None, traced(*BASE)) == ""
    assert difference(traced(*BASE), None) == ""
