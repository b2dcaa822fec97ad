"""The output of `svc reconcile` for people."""

import pytest

from broker.consumer_lag import ConsumerLag
from cli.reconcile import print_reconciliation, status
from storage.maintain.reconcile.reconcile import FigureDifference, ProjectFigures, Reconciliation

LAG = ConsumerLag("writer", "grouped", 200)
FIGURES = ProjectFigures(
    "1537694265",
    "shop",
    accepted=1_234_567,
    stored=1_234_567,
    payloads=1_234_567,
    counted_in_issues=1_234_567,
    issues=321,
    rollups={"issue_day": 1_234_567},
)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_table_names_each_project_also_on_a_narrow_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_reconciliation(Reconciliation([FIGURES], [], quiet=True), [], {})
    output = capsys.readouterr().out
    assert "shop" in output
    assert "(1537694265)" in output
    assert output.count("1,234,567") == 5


@pytest.mark.parametrize(
    ("what", "behind", "expected"),
    [
        ((), [], 0),
        ((), [LAG], 0),
        (("stored",), [], 1),
        (("stored", "issue_day"), [LAG], 3),
        (("stored", "events stored twice"), [LAG], 1),
    ],
)
def test_the_exit_status_tells_differences_from_possible_lag(
    what: tuple[str, ...], behind: list[ConsumerLag], expected: int
) -> None:
    differences = [FigureDifference("7", name, 1, 2) for name in what]
    assert status(Reconciliation([], differences, quiet=True), behind) == expected
