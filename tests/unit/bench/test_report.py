"""The results of programs."""

from io import StringIO

import pytest
from rich.console import Console

from bench.report import Claim, end, falls, show_claims


def test_claims_hold_if_each_does_and_each_is_printed() -> None:
    output = StringIO()
    console = Console(file=output)
    right, wrong = Claim("events", 3, 3), Claim("payloads", 3, 2)
    assert show_claims(console, [right])
    assert not show_claims(console, [wrong, right])
    assert output.getvalue().count("events: 3 expected, 3 found") == 2
    assert "NO payloads: 3 expected, 2 found" in output.getvalue()


def test_a_figure_falls_beyond_the_tolerance_or_if_it_is_missing() -> None:
    kept = {"precision": 0.9, "recall": 0.9, "gone": -0.1}
    assert falls({"precision": 0.896, "recall": 0.894}, kept, 0.005) == [
        "recall: 0.8940, it was 0.9000",
        "gone: 0.0000, it was -0.1000",
    ]


def test_a_program_fails_if_something_is_worse() -> None:
    with pytest.raises(SystemExit) as passed:
        end([])
    assert passed.value.code == 0
    with pytest.raises(SystemExit) as failed:
        end(["slower", "larger"])
    assert failed.value.code == "slower\nlarger"
