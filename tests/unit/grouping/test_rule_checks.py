"""What may be saved as rules: every bound is named where it is passed, by the rule's place."""

from typing import Any

import pytest

from grouping.rule_checks import MAX_PATTERNS, MAX_RULES, MAX_TERMS, violations
from schemas.projects import GroupingRule


def rule(name: str = "r", match: str = "type:X", **set_: Any) -> GroupingRule:
    return GroupingRule(name, match, **({"discard": True} | set_))


def reported(*rules: GroupingRule) -> list[tuple[str, str]]:
    return [(detail.field, detail.message) for detail in violations(rules)]


def test_ordinary_rules_have_no_violation() -> None:
    assert reported(rule("a"), rule("b", "", not_in_app=("*/vendor/*", "com.example.*"))) == []


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        (rule("x" * 101), "rules[0].name", "1 to 100 characters"),
        (rule("a\n"), "rules[0].name", "no control characters"),
        (rule(match="(("), "rules[0].match", "at position 2"),
        (rule(match="is:open"), "rules[0].match", "before it has an issue"),
        (GroupingRule("r", "type:X"), "rules[0]", "sets nothing"),
        (rule(fingerprint=("x",) * 21), "rules[0].fingerprint", "at most 20 elements, not 21"),
        (rule(fingerprint=("a", "x" * 501)), "rules[0].fingerprint[1]", "at most 500 characters"),
        (rule(in_app=("*a",) * MAX_PATTERNS + ("b",)), "rules", "at most 250 patterns"),
        (rule(not_in_app=("ok", "a" * 201)), "rules[0].notInApp[1]", "1 to 200 characters"),
        (rule(not_in_app=("",)), "rules[0].notInApp[0]", "1 to 200 characters"),
        (rule(in_app=("*a" * 17,)), "rules[0].inApp[0]", "at most 16 stars"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(wrong: GroupingRule, field: str, words: str) -> None:
    [(named, message)] = reported(wrong)
    assert named == field
    assert words in message


def test_rules_are_bounded_together() -> None:
    assert reported(*[rule(str(n)) for n in range(MAX_RULES)]) == []
    [(field, message)] = reported(*[rule(str(n)) for n in range(MAX_RULES + 1)])
    assert (field, message) == ("rules", "at most 200 rules per project, not 201")
    listed = "type:[" + ",".join(map(str, range(MAX_TERMS // 4))) + "]"
    assert reported(*[rule(str(n), listed) for n in range(4)]) == []
    assert reported(*[rule(str(n), listed) for n in range(4)], rule("last")) == [
        ("rules", "at most 500 terms in all match together, not 501")
    ]


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    [(field, message)] = reported(*[rule(str(n), "((" * 4000) for n in range(7)])
    assert field == "rules"
    assert message.startswith("at most 50000 characters")


def test_names_are_distinct() -> None:
    assert reported(rule("a"), rule("a")) == [("rules[1].name", "another rule has this name")]


@pytest.mark.parametrize(
    "element", ["{{ default }}", "{{tags[a]}}", "x {{ type }} {{ tags.a }}", "plain", "}} {"]
)
def test_known_variables_are_taken(element: str) -> None:
    assert reported(rule(fingerprint=(element,))) == []


@pytest.mark.parametrize(
    ("element", "position"),
    [
        ("{{ tenant }}", 0),
        ("to {{ user }}", 3),
        ("{{ type }} {{ x", 11),
        ("a {{ default }}", 2),
        ("{{ tags[] }}", 0),
    ],
)
def test_what_is_no_variable_is_refused_with_its_position(element: str, position: int) -> None:
    [(field, message)] = reported(rule(fingerprint=("fine", element)))
    assert field == "rules[0].fingerprint[1]"
    assert message.startswith(f"at position {position}: ")
