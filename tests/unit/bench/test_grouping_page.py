"""The page about grouping says what the code does."""

import json
import re

import msgspec
import pytest
from click.testing import CliRunner

from bench.grouping_page import CASES, PAGE, Case, command, counts
from grouping.fingerprint.messages import headline, template
from grouping.rules import compile_rules
from schemas.projects import GroupingRule

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_are_current() -> None:
    result = CliRunner().invoke(command, ["--check"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_example_beats_a_simple_grouping(case: Case) -> None:
    count = counts(case)
    assert abs(count["here"] - count["problems"]) < max(
        abs(count["message"] - count["problems"]), abs(count["stack"] - count["problems"])
    )


def test_there_are_ten_examples() -> None:
    assert len(CASES) == 10


def test_the_table_of_templates_is_what_messages_become() -> None:
    table = TEXT.partition("<!-- templates")[2].partition("<!-- end of templates -->")[0]
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \|$", table, re.MULTILINE)
    assert len(rows) >= 8
    assert {message: template(message) for message, _ in rows} == dict(rows)


def test_the_kept_codes_are_kept() -> None:
    for word in ("status", "code", "error", "errno", "HTTP"):
        assert f"`{word}`" in TEXT
        assert headline(f"failed: {word} 404") != headline(f"failed: {word} 500")


def test_the_rules_on_the_page_compile() -> None:
    blocks = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert blocks
    for block in blocks:
        rules = compile_rules(msgspec.convert(json.loads(block), list[GroupingRule]))
        assert rules.errors == {}
