"""The captured parts of an exception: the chain, its messages, its places."""

from collections.abc import Callable
from typing import Any

import pytest

from svc.exception_chain import ExceptionInfo, chain


def caught(raising: Callable[[], Any]) -> BaseException:
    try:
        raising()
    except BaseException as error:  # noqa: BLE001  # also groups of base exceptions
        return error
    raise AssertionError("nothing was raised")


def types(links: list[ExceptionInfo]) -> list[str]:
    return [link.type for link in links]


def raise_root() -> None:
    raise KeyError("root")


def with_cause() -> None:
    try:
        raise_root()
    except KeyError as error:
        raise ValueError("outer") from error


def with_context() -> None:
    try:
        raise_root()
    except KeyError:
        raise ValueError("outer")  # noqa: B904  # this tests the context


def with_suppressed_context() -> None:
    try:
        raise_root()
    except KeyError:
        raise ValueError("outer") from None


def test_explicit_cause_is_followed() -> None:
    links = chain(caught(with_cause))
    assert [(link.type, link.message) for link in links] == [("ValueError", "outer"), ("KeyError", "'root'")]


def test_context_is_followed_unless_suppressed() -> None:
    assert types(chain(caught(with_context))) == ["ValueError", "KeyError"]
    assert types(chain(caught(with_suppressed_context))) == ["ValueError"]


def test_cycle_is_cut() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    assert [link.message for link in chain(one)] == ["1", "2"]


def test_top_of_the_stack_comes_first() -> None:
    def inner() -> None:
        raise ValueError

    def outer() -> None:
        inner()

    sites = chain(caught(outer))[0].sites
    assert [spot.code.co_name for spot in sites] == ["inner", "outer", "caught"]
    assert {spot.module for spot in sites} == {__name__}


def test_exception_that_was_never_raised_has_the_callers_stack() -> None:
    import sys

    sites = chain(ValueError("made"), sys._getframe())[0].sites
    assert sites[0].code.co_name == "test_exception_that_was_never_raised_has_the_callers_stack"
    assert chain(ValueError("made"))[0].sites == []


def test_group_has_the_messages_of_its_members_and_continues_with_the_first() -> None:
    def group() -> None:
        members = [caught(with_cause), OSError("second")]
        raise BaseExceptionGroup("two went wrong", members)

    links = chain(caught(group))
    assert types(links) == ["ExceptionGroup", "ValueError", "KeyError"]
    assert links[0].message == "two went wrong (2 sub-exceptions)\n- ValueError: outer\n- OSError: second"


def test_notes_belong_to_the_message() -> None:
    error = ValueError("m")
    error.add_note("while reading page 7")
    assert chain(error)[0].message == "m\nwhile reading page 7"


@pytest.mark.parametrize("fault", [RuntimeError("in str"), RecursionError()])
def test_exception_that_cannot_be_printed_has_a_message_still(fault: Exception) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise fault

        __repr__ = __str__

    assert chain(Unprintable())[0].message == "<unprintable Unprintable>"
