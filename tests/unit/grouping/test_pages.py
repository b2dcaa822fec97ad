"""The pages about grouping match the code."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.fingerprint_lines import explain
from grouping import rule_checks
from grouping.fingerprint.messages import headline, template
from grouping.rule_checks import violations
from grouping.rules import compile_rules
from grouping.steps import EVENT_STEPS, MAX_STEPS
from grouping.variables import KNOWN
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import event, frame

DOCS = Path(__file__).parents[3] / "docs"
GROUPING = (DOCS / "grouping.md").read_text(encoding="utf-8")
RULES = (DOCS / "develop" / "grouping-rules.md").read_text(encoding="utf-8")
PROSE = " ".join(RULES.split())


def test_the_table_of_templates_agrees_with_the_code() -> None:
    table = GROUPING.partition("<!-- templates")[2].partition("<!-- end of templates -->")[0]
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \|$", table, re.MULTILINE)
    assert len(rows) >= 8
    assert {message: template(message) for message, _ in rows} == dict(rows)


def test_the_kept_codes_are_kept() -> None:
    for word in ("status", "code", "error", "errno", "HTTP"):
        assert f"`{word}`" in GROUPING
        assert headline(f"failed: {word} 404") != headline(f"failed: {word} 500")


def documented_rules() -> list[GroupingRule]:
    """The rules of the page."""
    block = RULES.partition("<!-- rules")[2].partition("```json\n")[2].partition("```")[0]
    return msgspec.convert(json.loads(block), list[GroupingRule])


def test_the_rules_on_the_page_can_be_saved() -> None:
    assert violations(documented_rules()) == []


REPORT = event("E", "boom", [frame("print", "src/report.js")])
OURS = [frame("get", "a/node_modules/@ours/wire/index.js", in_app=False), frame("pay", "src/pay.js")]


@pytest.mark.parametrize(
    ("sent", "rule", "part"),
    [
        (event("HttpError", "GET https://psp.example.com/x: 503"), "rule:provider", "given provider down"),
        (REPORT | {"tags": {"tenant": "acme"}}, "rule:by tenant", "given acme"),
        (REPORT | {"tags": {"tenant": "globex"}}, "rule:by tenant", "given globex"),
        (REPORT, "rule:by tenant", "given <none>"),
        (event(stack=OURS), "stack", "frame get in @ours/wire/index.js"),
        (
            event(stack=[frame("retryTwice", "src/a.js"), frame("pay", "src/pay.js")]),
            "stack",
            "frame pay in pay.js",
        ),
        (event("E", "ResizeObserver loop limit exceeded"), "rule:noise", "type engine error"),
    ],
)
def test_the_rules_on_the_page_work_as_described(sent: dict[str, Any], rule: str, part: str) -> None:
    line = json.dumps(sent).encode()
    found = explain(line, compile_rules(documented_rules()))
    assert found.rule == rule
    assert part in found.parts
    assert found.discard == (rule == "rule:noise")


def test_the_variables_on_the_page_are_those_that_are_known() -> None:
    table = RULES.partition("<!-- variables")[2].partition("<!-- end of variables -->")[0]
    assert set(re.findall(r"\{\{ (.+?) \}\}", table)) == {*KNOWN, "tags.KEY"}


def test_the_limits_on_the_page_are_those_that_hold() -> None:
    rows = [
        f"at most {rule_checks.MAX_RULES} rules",
        f"{rule_checks.MAX_CHARACTERS:,} characters",
        f"{MAX_STEPS // 1_000_000} million steps",
        f"{EVENT_STEPS // 1_000_000} million more for each event",
    ]
    assert [one for one in rows if one not in PROSE] == []
