"""Cases from public reports of other trackers, with the partition that is right: `source` names the report."""

from typing import Any, Final

import msgspec
import pytest

from tests.unit.grouping.fingerprint.events import SAMPLES, grouped

REPORTS: Final[list[dict[str, Any]]] = [
    msgspec.json.decode(line) for line in (SAMPLES / "reports.jsonl").read_bytes().splitlines()
]
WRONG: Final = frozenset({"dynamic-component", "page-inline"})
"""Debatable cases that stay as they are: docs/decisions/fingerprints.md says why."""


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])
def test_a_report_is_grouped_as_it_says(report: dict[str, Any]) -> None:
    issues: dict[int, list[int]] = {}
    for number, event in enumerate(report["events"]):
        issues.setdefault(grouped(event).hash, []).append(number)
    assert (sorted(issues.values()) == sorted(report["groups"])) == (report["name"] not in WRONG)
