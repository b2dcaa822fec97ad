"""Which issues are surely one although their fingerprints differ."""

from typing import Any

import pytest

from grouping.alike import MAX_ISSUES, SURE, NamedFrame, Neighbours, Trace, aligned, trace_of
from grouping.fingerprint import GroupingEvent
from grouping.fingerprint.event_view import GroupingError, GroupingFrame

NULL = "Cannot read properties of undefined (reading 'name')"


def event(*functions: str, message: str = NULL, kind: str = "TypeError", **more: Any) -> GroupingEvent:
    """A JavaScript error; a frame is `function file`, with only the file where the function has no name."""
    frames = [
        GroupingFrame(function=function, file=f"/srv/app/{file}", line=3, in_app=True)
        for function, _, file in (one.rpartition(" ") for one in functions)
    ]
    return GroupingEvent(
        platform="javascript", error=GroupingError(type=kind, message=message, stack=frames, **more)
    )


def traced(*functions: str, **more: Any) -> Trace:
    found = trace_of(event(*functions, **more))
    assert found is not None
    return found


def likeness(one: Trace, other: Trace) -> float:
    neighbours = Neighbours()
    # Others of the project: what all stacks have says little.
    for number in range(20):
        name = "abcdefghijklmnopqrst"[number]
        neighbours.add(100 + number, traced(f"f{name} {name}.js", "loop main.js", message=name))
    neighbours.add(1, one)
    found = neighbours.nearest(other)
    return 0 if found is None else found.likeness


BASE = ("onTyping session.js", "route session.js", "receive session.js", "loop main.js")


def test_a_frame_whose_name_an_engine_lost_is_the_same() -> None:
    assert likeness(traced(*BASE), traced("session.js", *BASE[1:])) >= SURE


def test_callers_that_an_engine_left_out_are_no_difference() -> None:
    deep = ("session.js", "route session.js", "receive session.js", "open socket.js", "loop main.js")
    assert likeness(traced(*deep), traced(deep[0], *deep[2:])) >= SURE


@pytest.mark.parametrize(
    "other",
    [
        traced("onPresence session.js", *BASE[1:]),
        traced("other.js", *BASE[1:]),
        traced(*BASE, message="Cannot read properties of undefined (reading 'id')"),
        traced(*BASE, kind="RangeError"),
        traced("session.js", "receive session.js", "route session.js"),
        traced("session.js", "receive session.js", "reset session.js"),
        traced(*BASE, cause=GroupingError(type="TypeError", message=NULL, stack=event(*BASE).error.stack)),
    ],
    ids=[
        "another name",
        "another file",
        "another fault",
        "another type",
        "another order",
        "another caller",
        "another chain",
    ],
)
def test_what_differs_in_earnest_is_no_neighbour(other: Trace) -> None:
    assert likeness(traced(*BASE), other) == 0


def test_frames_of_the_whole_project_are_little_evidence() -> None:
    assert (
        0
        < likeness(traced("session.js", "loop main.js"), traced("onTyping session.js", "loop main.js"))
        < SURE
    )


def test_without_own_frames_or_with_a_weak_fault_of_a_build_nothing_is_compared() -> None:
    assert trace_of(GroupingEvent(platform="javascript", error=GroupingError(type="E", message="m"))) is None
    build = [
        GroupingFrame(function="a", file="https://x.example/app.min.js", line=1, column=90_000, in_app=True)
    ]
    for message, is_compared in (
        (NULL, True),
        ("Cannot read properties of undefined (reading 'length')", False),
    ):
        made = GroupingEvent(
            platform="javascript", error=GroupingError(type="TypeError", message=message, stack=build)
        )
        assert (trace_of(made) is not None) == is_compared


def test_the_tops_of_stacks_must_fit_and_the_shorter_be_within_the_longer() -> None:
    a, b, c, nameless = NamedFrame("a", "f"), NamedFrame("b", "f"), NamedFrame("c", "g"), NamedFrame("", "f")
    assert aligned((a, b, c), (a, c)) == [a, c]
    assert aligned((nameless, c), (a, b, c)) == [c]
    assert aligned((a, c), (b, a, c)) is None
    assert aligned((), (a,)) is None
    assert aligned((), ()) == []


def test_the_oldest_issues_are_forgotten() -> None:
    neighbours = Neighbours()
    files = [f"{a}{b}{c}.js" for a in "abcdefghijklm" for b in "abcdefghijklm" for c in "abcdefghijklm"]
    for number in range(MAX_ISSUES + 1):
        neighbours.add(number, traced(f"f {files[number]}", "g b.js"))
    assert 0 not in neighbours
    assert neighbours.nearest(traced(files[0], "g b.js")) is None
    found = neighbours.nearest(traced(files[1], "g b.js"))
    assert found is not None
    assert found.issue == 1
