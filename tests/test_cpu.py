"""The guard of the tests' CPU seconds."""

from pathlib import Path

from tests.cpu import grown, raised


def test_a_tier_that_takes_more_than_its_budget_is_named() -> None:
    budget = {"unit": 10_000.0, "contract": 100.0}
    assert grown({"unit": 11_000.0, "contract": 170.0}, budget) == []
    assert grown({"unit": 13_000.0, "contract": 300.0}, budget) == [
        "contract takes 300 units of CPU; its budget is 100",
        "unit takes 13000 units of CPU; its budget is 10000",
    ]


def test_a_tier_without_a_budget_is_named() -> None:
    assert grown({"e2e": 2_000.0}, {}) == ["e2e takes 2000 units of CPU; its budget is 0"]


def test_a_budget_is_raised_and_never_lowered(tmp_path: Path) -> None:
    file = tmp_path / "budget.json"
    file.write_text('{"unit": 200, "e2e": 50}')
    assert raised({"unit": 100.4, "contract": 7.6}, file) == {"contract": 8, "e2e": 50, "unit": 200}
