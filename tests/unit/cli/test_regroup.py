"""What `svc regroup` prints."""

import pytest
from click.testing import CliRunner

from cli.__main__ import svc
from cli.regroup import show
from rebuild.regrouping import IssueChange, RegroupReport

ISSUE, OTHER, NEW = "a" * 16, "b" * 16, "c" * 16
REPORT = RegroupReport(
    project_id="7",
    before="v1",
    after="v2",
    events=1_234,
    unreadable=3,
    dropped=0,
    issues=40,
    joins=[IssueChange(ISSUE, "TypeError: x is [null]", 12, OTHER)],
    splits=[IssueChange(OTHER, "KeyError", 5, NEW, is_new=True), IssueChange(OTHER, "KeyError", 2, ISSUE)],
)


def lines(capsys: pytest.CaptureFixture[str], report: RegroupReport) -> list[str]:
    show(report)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_the_report_says_what_joined_and_what_split_off(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(capsys, REPORT)
    assert found[0] == "1,234 stored events in 40 issues, v1 → v2 (3 without a readable payload left out)"
    assert found[1] == "38 issues stay as they are, 1 joined others, of 1 a part split off"
    assert f"{ISSUE} TypeError: x is [null] 12 {OTHER}" in found
    assert f"{OTHER} KeyError 5 {NEW} (new)" in found
    assert f"{OTHER} KeyError 2 {ISSUE}" in found


def test_a_dry_run_says_what_would_happen(capsys: pytest.CaptureFixture[str]) -> None:
    many = [IssueChange(ISSUE, "E", 1, OTHER)] * 25
    changed = RegroupReport(
        project_id="7", before="v1", after="v2", events=9, unreadable=0, dropped=2, issues=30, joins=many, splits=[], is_dry=True
    )  # fmt: skip
    found = lines(capsys, changed)
    assert found[0] == "9 stored events in 30 issues, v1 → v2 (2 that rules drop left out)"
    assert found[1] == "5 issues stay as they are, 25 would join others, of 0 a part would split off"
    assert found[-1] == "and 5 more; --json prints all"


def test_an_undo_is_no_dry_run() -> None:
    result = CliRunner().invoke(svc, ["regroup", "shop", "--undo", "--dry-run"])
    assert (result.exit_code, "--undo and --dry-run exclude each other" in result.output) == (2, True)
