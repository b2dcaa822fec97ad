"""What many events of a project show is learnt of it, and little or doubtful evidence is not."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from grouping.fingerprint import GroupingEvent, fingerprint, mechanism_of
from grouping.fingerprint.learnt import slot_values, slots_pattern
from grouping.learning import (
    CALLERS,
    EACH,
    MAX_FACTS,
    UNLIKE_MESSAGES,
    VARIOUS,
    SeenFrame,
    SeenMessage,
    added,
    helpers,
    message_of,
    seen_in,
    telling,
    varying,
)
from schemas.projects import LearntFact, Project

WORDS = [
    "disk",
    "quota",
    "lock",
    "schema",
    "tenant",
    "socket",
    "parser",
    "header",
    "token",
    "invoice",
    "ledger",
    "carrier",
    "shard",
    "queue",
    "mirror",
    "replica",
    "cursor",
    "vacuum",
    "index",
    "trigger",
    "view",
    "column",
    "sequence",
    "domain",
]
V2 = Project("7", "p", "2026-01-01T00:00:00Z", grouping_version="v2")


def event(
    function: str, caller: str, message: str, kind: str = "StorageError", platform: str = "python"
) -> GroupingEvent:
    """An error in `function`, which `caller` called."""
    suffix = "js" if platform == "javascript" else "py"
    stack = [
        {"function": function, "file": f"shop/orm.{suffix}", "line": 3, "inApp": True},
        {"function": caller, "file": f"shop/views.{suffix}", "line": 9, "inApp": True},
        {"function": "main", "file": f"shop/app.{suffix}", "line": 1, "inApp": True},
    ]
    sent = {"platform": platform, "error": {"type": kind, "message": message, "stack": stack}}
    return msgspec.convert(sent, GroupingEvent)


def unlike(count: int) -> list[str]:
    return [f"{WORDS[2 * n]} without {WORDS[2 * n + 1]}" for n in range(count)]


def knowing(*facts: LearntFact, **fields: Any) -> Project:
    return replace(V2, learnt=facts, **fields)


def frames(callers: int, messages: Sequence[str], kinds: Sequence[str] = ("E",)) -> Iterable[SeenFrame]:
    for n in range(max(callers, len(messages))):
        message = messages[n % len(messages)]
        yield SeenFrame(kinds[n % len(kinds)], "write in orm", f"caller{n % callers} in views", message)


def test_a_frame_with_many_callers_and_unlike_messages_is_a_helper() -> None:
    (found,) = helpers(frames(CALLERS + 1, unlike(UNLIKE_MESSAGES)))
    assert found == LearntFact("helper", "write in orm", callers=CALLERS + 1, messages=UNLIKE_MESSAGES)


@pytest.mark.parametrize(
    "seen",
    [
        list(frames(CALLERS - 1, unlike(UNLIKE_MESSAGES))),
        list(frames(CALLERS, unlike(UNLIKE_MESSAGES - 1))),
        # One problem with a word of each customer's.
        list(frames(CALLERS, [f"the customer {word} has no address" for word in WORDS])),
        # Types tell them apart already.
        list(frames(CALLERS, unlike(UNLIKE_MESSAGES), [f"E{n}" for n in range(UNLIKE_MESSAGES)])),
    ],
    ids=["few callers", "few messages", "alike messages", "many types"],
)
def test_a_frame_is_no_helper(seen: list[SeenFrame]) -> None:
    assert helpers(seen) == []


@pytest.mark.parametrize("platform", ["python", "javascript"])
def test_a_helper_lets_its_caller_and_the_message_count(platform: str) -> None:
    events = [
        event("write", f"show_{WORDS[n]}", message, platform=platform)
        for n, message in enumerate(unlike(UNLIKE_MESSAGES))
    ]
    seen = [frame for one in events if (frame := seen_in(one, mechanism_of(V2))[0]) is not None]
    (fact,) = helpers(seen)
    then = mechanism_of(knowing(fact))
    one, other = (
        event("write", f"show_{name}", "quota spent", platform=platform) for name in ("cart", "order")
    )
    assert fingerprint(one).hash == fingerprint(other).hash
    assert fingerprint(one, version=then).hash != fingerprint(other, version=then).hash
    parts = fingerprint(events[0], version=then).parts
    assert parts[-2 if platform == "python" else -1].startswith("frame show_disk in ")
    assert any(part.startswith("message ") for part in parts)
    # What is known isn't found again.
    assert [seen_in(one, then)[0] for one in events] == [None] * len(events)


@pytest.mark.parametrize(
    "project", [knowing(LearntFact("helper", "write in shop/orm.py", overruled=True)), replace(V2, learnt=())]
)
def test_what_is_overruled_changes_nothing(project: Project) -> None:
    assert mechanism_of(project) is mechanism_of(V2)


def test_projects_of_version_1_learn_nothing() -> None:
    project = knowing(LearntFact("helper", "write in shop/orm.py"), grouping_version="v1")
    assert mechanism_of(project) is mechanism_of(replace(V2, grouping_version="v1"))


def test_the_same_facts_are_one_mechanism_and_others_another() -> None:
    fact = LearntFact("helper", "write in shop/orm.py")
    assert mechanism_of(knowing(fact)) is mechanism_of(knowing(replace(fact)))
    assert mechanism_of(knowing(fact)).key != mechanism_of(knowing(replace(fact, text="f in g"))).key


def messages(make: Callable[[int], str], count: int, *others: str) -> list[SeenMessage]:
    return [SeenMessage(("type E", *others), make(n), make(n)) for n in range(count)]


def test_a_word_of_many_values_varies() -> None:
    seen = messages(lambda n: f"no such customer {WORDS[n]} in store", VARIOUS)
    (fact,) = varying(seen)
    assert fact == LearntFact("varies", "no such customer <*> in store", 3, messages=VARIOUS)
    project = mechanism_of(knowing(fact))
    alice, bob = (
        fingerprint(event("", "", f"no such customer {name} in store"), version=project).parts
        for name in ("alice", "bob")
    )
    assert fact.text in alice[-1]
    assert alice == bob


@pytest.mark.parametrize(
    "seen",
    [
        messages(lambda n: f"no such customer {WORDS[n]}", VARIOUS - 1),
        # With other frames each.
        [
            SeenMessage((f"frame f{n}",), f"no such {word} here", f"no such {word} here")
            for n, word in enumerate(WORDS)
        ],
        # Nothing would be left that says something.
        messages(lambda n: f"failed: {WORDS[n]}", VARIOUS),
        messages(lambda n: f"{WORDS[n]} of {WORDS[-n - 1]} is missing", VARIOUS),
    ],
    ids=["few values", "other frames", "one word", "two words"],
)
def test_a_word_does_not_vary(seen: list[SeenMessage]) -> None:
    assert varying(seen) == []


def reports(*values: str, count: int = EACH) -> list[SeenMessage]:
    template = "interface <*> is down"
    return [SeenMessage((), template, f"interface {value} is down") for value in values for _ in range(count)]


def test_a_few_names_that_are_there_often_tell() -> None:
    (fact,) = telling(reports("eth0", "wlan0"))
    assert fact == LearntFact("telling", "interface <*> is down", 0, ("eth0", "wlan0"), messages=2 * EACH)
    then = mechanism_of(knowing(fact))

    def down(name: str) -> tuple[str, ...]:
        return fingerprint(event("", "", f"interface {name} is down"), version=then).parts

    assert fingerprint(event("", "", "interface eth0 is down")).parts[-1] == "message interface <*> is down"
    assert [down(name)[-1] for name in ("eth0", "wlan0", "eth7")] == [
        "message interface eth0 is down",
        "message interface wlan0 is down",
        "message interface <*> is down",
    ]


@pytest.mark.parametrize(
    "seen",
    [
        reports("eth0"),
        reports("eth0", "wlan0", count=EACH - 1),
        reports("eth0", "eth1", "eth2", "eth3", "eth4", "eth5"),
        reports("17", "18"),
        reports("10.0.0.1", "10.0.0.2"),
        reports("true", "false"),
        [*reports("eth0", "wlan0"), SeenMessage((), "interface <*> is down", "something else")],
    ],
    ids=["one", "seldom", "many", "numbers", "addresses", "states", "not found in all"],
)
def test_values_do_not_tell(seen: list[SeenMessage]) -> None:
    assert telling(seen) == []


def test_a_telling_value_stays_among_other_slots() -> None:
    facts = telling(
        [
            SeenMessage((), "pod <*> at <*>: <*> gone", f"pod x{n} at zone{n % 2}a: 7 gone")
            for n in range(2 * EACH)
        ]
    )
    assert facts == []
    fact = LearntFact("telling", "login of <*> by <*> failed", 1, ("card", "code"))
    then = mechanism_of(knowing(fact))
    found = fingerprint(event("", "", "login of 'ann' by 'card' failed"), version=then).parts[-1]
    assert found == "message login of <*> by <*> failed"


def test_new_facts_come_after_known_ones_which_stay_as_users_left_them() -> None:
    overruled = LearntFact("helper", "write in orm", overruled=True, learnt_at=1)
    other = LearntFact("helper", "read in orm")
    facts = added([overruled], [replace(overruled, overruled=False, learnt_at=0), other], 5)
    assert facts == (overruled, replace(other, learnt_at=5))
    many = [LearntFact("helper", f"f{n}") for n in range(MAX_FACTS + 5)]
    assert len(added([overruled], many, 5)) == MAX_FACTS


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("type E", "message a <*>"), SeenMessage(("type E",), "a <*>")),
        (("type E", "cause message a"), SeenMessage(("type E",), "a")),
        (("type E", "frame f"), None),
        (("message a", "message b"), None),
    ],
)
def test_the_message_is_found_among_the_parts(parts: tuple[str, ...], found: SeenMessage | None) -> None:
    assert message_of(parts) == found


def test_the_order_of_events_changes_nothing() -> None:
    seen = [*frames(CALLERS + 3, unlike(UNLIKE_MESSAGES + 4))]
    mixed = list(seen)
    random.Random(3).shuffle(mixed)
    assert helpers(seen) == helpers(mixed)


def test_values_are_found_in_a_hostile_message_without_delay() -> None:
    pattern = slots_pattern("a <*> a <*> a <*> a <*> a <*> b")
    assert slot_values(pattern, "a " * 300) == ("a", "a", "a")
    assert slot_values(slots_pattern("a <*> a <*> a <*> b"), "a " * 300) == ()
