"""What `svc reconcile` shows to people."""

import pytest

from local.reconcile import _show
from storage.reconcile import ProjectFigures, Reconciliation

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
    _show(Reconciliation([FIGURES], [], quiet=True), [], {})
    shown = capsys.readouterr().out
    assert "shop" in shown
    assert "(1537694265)" in shown
    assert shown.count("1,234,567") == 5
