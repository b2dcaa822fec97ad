"""Limits of rules: every violation is reported, with the rule's position."""

from typing import Any

import pytest

from grouping.rule_checks import MAX_CHARACTERS, MAX_RULES, violations
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
        (rule(not_in_app=("a", "")), "rules[0].notInApp[1]", "matches nothing"),
    ],
)
def test_errors_are_named_by_their_place(wrong: GroupingRule, field: str, words: str) -> None:
    [(named, message)] = reported(wrong)
    assert named == field
    assert words in message


def test_the_number_of_rules_is_bounded() -> None:
    assert reported(*[rule(str(n)) for n in range(MAX_RULES)]) == []
    assert reported(*[rule(str(n)) for n in range(MAX_RULES + 1)]) == [
        ("rules", "at most 100 rules per project, not 101")
    ]


@pytest.mark.parametrize("field", ["match", "fingerprint", "in_app", "not_in_app"])
def test_the_length_of_a_rule_is_bounded_by_any_of_its_fields(field: str) -> None:
    def long(characters: int) -> GroupingRule:
        text = "x" * (characters - len("r") - (len("type:X") + 1) * (field != "match"))
        made: dict[str, Any] = {field: text if field == "match" else (text,)}
        return rule(**made)

    assert reported(long(MAX_CHARACTERS)) == []
    assert reported(rule("fine"), long(MAX_CHARACTERS + 1)) == [
        ("rules[1]", "at most 1,000 characters in all its fields together, not 1,001")
    ]


def test_each_element_counts_however_short_it_is() -> None:
    [(field, _)] = reported(rule(fingerprint=("",) * 1000))
    assert field == "rules[0]"


def test_too_large_bodies_are_refused_before_they_are_read() -> None:
    [(field, message)] = reported(rule(match="((" * 4000))
    assert field == "rules[0]"
    assert message.startswith("at most 1,000 characters")


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
def test_an_unknown_variable_is_refused_with_its_position(element: str, position: int) -> None:
    [(field, message)] = reported(rule(fingerprint=("fine", element)))
    assert field == "rules[0].fingerprint[1]"
    assert message.startswith(f"at position {position}: ")
