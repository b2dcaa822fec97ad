"""The guard of the tests' CPU seconds."""

from tests.cpu import grown


def test_a_tier_that_takes_more_than_its_budget_is_named() -> None:
    budget = {"unit": 10_000.0, "contract": 100.0}
    assert grown({"unit": 11_000.0, "contract": 500.0}, budget) == []
    assert grown({"unit": 13_000.0, "contract": 100.0}, budget) == [
        "unit takes 13000 units of CPU; its budget is 10000"
    ]


def test_a_tier_without_a_budget_is_named() -> None:
    assert grown({"e2e": 2_000.0}, {}) == ["e2e takes 2000 units of CPU; its budget is 0"]
