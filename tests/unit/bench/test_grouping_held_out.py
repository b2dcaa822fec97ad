"""The rules that one project alone needs, on made-up rules."""

import re
from functools import lru_cache
from types import ModuleType

import pytest

from bench.grouping_held_out import HoldOut, Rules
from bench.grouping_scores import Label, score
from grouping.fingerprint import fingerprint
from grouping.fingerprint.event_view import GroupingError, GroupingEvent

# Each problem: its project, and the messages of its events.
PROBLEMS = [
    ("shop", ["lost 7", "lost 8"]),
    ("bank", ["lost 5", "lost 6"]),
    ("shop", ["late today", "late soon"]),
    ("bank", ["full up", "full down"]),
]


def made(table: object) -> ModuleType:
    """A module of one table, and a cache, which gives messages their issues."""
    module = ModuleType("made")

    @lru_cache
    def issue(message: str) -> str:
        rules = vars(module)["TABLE"]
        if isinstance(rules, re.Pattern):
            return rules.sub("*", message)
        return message.partition(" ")[0] if any(word in message for word in rules) else message

    vars(module).update(TABLE=table, issue=issue)
    return module


def held_out(table: object) -> tuple[HoldOut, float, float]:
    """With plain and held-out F1."""
    labels, events = [], {}
    for number, (project, messages) in enumerate(PROBLEMS):
        for message in messages:
            labels.append(Label(message, project, str(number)))
            events[message] = GroupingEvent(GroupingError("Error", message))
    module = made(table)

    def group(event: GroupingEvent) -> str:
        return str(module.issue(event.error.message))

    plain = score(labels, {each: group(event) for each, event in events.items()})
    found = HoldOut(events, {label.id: label.project for label in labels}, group, Rules([module]))
    assert vars(module)["TABLE"] is table
    return found, plain.pair_f1, score(labels, found.issues).pair_f1


@pytest.mark.parametrize(
    "table",
    [
        frozenset({"lost"}),
        ("lost",),
        {"lost": 1},
        re.compile(r" \d"),
        re.compile(r"(?<=lost)(?: 0| [0-9])"),
    ],
)
def test_what_helps_several_projects_is_general(table: object) -> None:
    found, plain, without = held_out(table)
    assert found.own == {}
    assert plain == without > 0


@pytest.mark.parametrize(
    ("table", "entry"),
    [
        (frozenset({"lost", "late"}), "made.TABLE: late"),
        (("lost", "never", "late"), "made.TABLE: late"),
        ({"late": 1, "lost": 2}, "made.TABLE: late"),
        (re.compile(r" \d| (?:today|soon)"), "made.TABLE:  (?:today|soon)"),
        (re.compile(r"(?P<number> \d)|(?<=[|\]e]) \w+"), "made.TABLE: (?<=[|\\]e]) \\w+"),
    ],
)
def test_what_helps_one_project_is_a_gap(table: object, entry: str) -> None:
    found, plain, without = held_out(table)
    assert entry in {str(each) for each in found.own["shop"]}
    assert set(found.own) == {"shop"}
    assert found.issues["late today"] != found.issues["late soon"]
    assert plain - without > 0.1


def test_an_alternative_however_deep_is_an_entry() -> None:
    found, _, _ = held_out(re.compile(r" (?:\d|up|(?:down|left)|never)"))
    assert [str(each) for each in found.own["bank"]] == [
        *("made.TABLE: up", "made.TABLE: (?:down|left)", "made.TABLE: down"),
    ]


def test_each_of_two_equal_alternatives_is_an_entry() -> None:
    found, _, _ = held_out(re.compile(r"(?:lost|full) (?:up|\d)|late (?:up|today)"))
    assert [each.key for each in found.own["bank"]] == [("full", 0), ("up", 0)]


def test_a_pattern_in_several_variants_is_one_table() -> None:
    module = ModuleType("made")
    variants = {plain: re.compile(rf"{plain}: (?:a|b)") for plain in ("x", "y")}
    vars(module).update(TABLE=variants, ALIAS=variants)
    rules = Rules([module])
    (table,) = rules.tables
    assert [each.key for each in table.entries] == [
        *(("x: (?:a|b)", 0), ("a", 0), ("b", 0), ("y: (?:a|b)", 0)),
    ]
    with rules.without([table.entries[1]]):
        assert not any(each.match(f"{name}: a") for name, each in vars(module)["ALIAS"].items())
        assert all(each.match(f"{name}: b") for name, each in vars(module)["TABLE"].items())
    assert vars(module)["ALIAS"] is variants


def test_the_product_is_as_before_whatever_happens_meanwhile() -> None:
    event = GroupingEvent(GroupingError("Error", "order 7 lost"), "python")
    rules = Rules()
    before = fingerprint(event)
    every_entry = [entry for table in rules.tables for entry in table.entries]
    assert len(every_entry) > 1000

    def interrupted() -> None:
        with rules.without(every_entry):
            assert fingerprint(event) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert fingerprint(event) == before
