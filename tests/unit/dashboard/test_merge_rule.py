"""The rule that is offered after a merge: it matches the merged issues, and not everything."""

import json

import pytest

from dashboard.view.merge_rule import offered_rule
from grouping.rules import compile_rules
from query.event_view import from_json
from schemas.read_api import IssuePart

PLAIN = "load in api.py"


def part(message: str, kind: str = "TimeoutError", culprit: str = PLAIN) -> IssuePart:
    return IssuePart("0" * 16, kind, message, culprit, 3)


def offered(*parts: IssuePart) -> tuple[str, str]:
    rule = offered_rule(parts)
    assert rule is not None
    assert rule.fingerprint == (rule.name,)
    return rule.match, rule.name


@pytest.mark.parametrize(
    ("parts", "match", "name"),
    [
        (
            [
                part("no answer of shard east in 3 s", culprit="a in b.py"),
                part("no answer of shard west in 12 s"),
            ],
            'type:TimeoutError message:"no answer of shard * in *"',
            "TimeoutError: no answer of shard in",
        ),
        (
            [part("same text"), part("same text", kind="ReadTimeout")],
            'type:[ReadTimeout, TimeoutError] message:"same text" function:"*load"',
            "ReadTimeout: same text",
        ),
        (
            [part("x is null"), part("y is undefined", culprit="load in other.py")],
            'type:TimeoutError function:"*load"',
            "TimeoutError: load",
        ),
        (
            [part('bad "a*b" here in it'), part('bad "a*b" here in it', culprit="")],
            'type:TimeoutError message:"bad * here in it"',
            "TimeoutError: bad here in it",
        ),
    ],
)
def test_the_common_parts_of_merged_issues_are_offered_as_a_rule(
    parts: list[IssuePart], match: str, name: str
) -> None:
    assert offered(*parts) == (match, name)
    rule = offered_rule(parts)
    assert rule is not None
    compiled = compile_rules([rule])
    assert not compiled.errors
    for one in parts:
        function = one.culprit.partition(" in ")[0]
        stack = [{"function": f"Api.{function}", "file": "/srv/api.py", "inApp": True}] if function else []
        event = {"error": {"type": one.error_type, "message": one.message, "stack": stack}}
        outcome = compiled.apply(from_json(json.dumps(event).encode(), "sdk/1", 0))
        assert outcome.rule == rule.name
    other = {"error": {"type": "TimeoutError", "message": "quite another", "stack": []}}
    assert compiled.apply(from_json(json.dumps(other).encode(), "sdk/1", 0)).rule == ""


@pytest.mark.parametrize(
    "parts",
    [
        [part("x is null")],
        [part("x is null", culprit="save in api.py"), part("y is undefined")],
        [
            part("x is null", culprit="<anonymous> in api.py"),
            part("y is undefined", culprit="<anonymous> in api.py"),
        ],
        [part("", kind="", culprit=""), part("some long message")],
        [part("some long message", kind=f"E{n}") for n in range(6)],
    ],
    ids=["one issue", "only a file in common", "no name in common", "a part without texts", "many types"],
)
def test_issues_that_have_nothing_in_common_offer_no_rule(parts: list[IssuePart]) -> None:
    assert offered_rule(parts) is None
