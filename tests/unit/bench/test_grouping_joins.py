"""How joins by likeness are scored."""

import msgspec

from bench.grouping import Evaluation, compare
from bench.grouping_joins import JoinScore, joins_of
from bench.grouping_scores import Label
from grouping.fingerprint import CURRENT_VERSION, GroupingEvent, fingerprint
from tests.unit.bench.test_grouping import BASELINE
from tests.unit.grouping.test_alike import BASE, event

NAMELESS = ("session.js", *BASE[1:])
DISTANT = (
    "session.js",
    "other far.js",
    "route session.js",
    "a b.js",
    "c d.js",
    "receive session.js",
    "e f.js",
    "loop main.js",
)


def scored(*known: tuple[str, tuple[str, ...], str]) -> JoinScore:
    """The score of events, each with its group, its frames and its project."""
    events = {f"{number:03}": event(*frames) for number, (_, frames, _) in enumerate(known)}
    labels = [
        Label(id=f"{number:03}", project=project, group=group)
        for number, (group, _, project) in enumerate(known)
    ]
    fingerprints = {name: fingerprint(made) for name, made in events.items()}
    return joins_of(labels, events, fingerprints, CURRENT_VERSION).score


def test_a_join_is_right_if_both_are_one_problem() -> None:
    assert scored(("a", BASE, "p"), ("a", NAMELESS, "p")) == JoinScore(right=1)
    assert scored(("a", BASE, "p"), ("b", NAMELESS, "p")) == JoinScore(wrong=1)


def test_issues_of_two_projects_never_join() -> None:
    assert scored(("a", BASE, "p"), ("a", NAMELESS, "q")) == JoinScore()


def test_what_is_less_alike_is_suggested() -> None:
    assert scored(("a", BASE, "p"), ("a", DISTANT, "p")) == JoinScore(suggested_right=1)


def test_a_fingerprint_joins_where_the_one_that_it_resembles_has_joined() -> None:
    events = {"1": event(*BASE), "2": event(*NAMELESS), "3": event("session.js", *BASE[2:])}
    labels = [Label(id=name, project="p", group="a") for name in events]
    fingerprints = {name: fingerprint(made) for name, made in events.items()}
    joined = joins_of(labels, events, fingerprints, CURRENT_VERSION).joined
    assert set(joined.values()) == {fingerprints["1"].hex}


def test_errors_that_no_stack_decides_are_left_alone() -> None:
    made = GroupingEvent(platform="javascript", error=event(*BASE).error, fingerprint=["own"])
    events = {"1": event(*NAMELESS), "2": made}
    labels = [Label(id=name, project="p", group="a") for name in events]
    fingerprints = {name: fingerprint(one) for name, one in events.items()}
    assert joins_of(labels, events, fingerprints, CURRENT_VERSION).score == JoinScore()


def test_a_wrong_join_among_fewer_than_a_hundred_right_ones_is_a_fall() -> None:
    baseline = msgspec.json.decode(BASELINE.read_bytes(), type=Evaluation)
    for joins, falls in (
        (JoinScore(right=200, wrong=2), 0),
        (JoinScore(right=200, wrong=3), 1),
        (JoinScore(), 1),
    ):
        assert len(compare(msgspec.structs.replace(baseline, joins=joins), baseline)) == falls
