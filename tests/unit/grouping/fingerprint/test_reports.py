"""Cases from public reports of other trackers, with the partition that is right: `source` names the report."""

from typing import Any, Final

import msgspec
import pytest

from tests.unit.grouping.fingerprint.events import SAMPLES, grouped

REPORTS: Final[list[dict[str, Any]]] = [
    msgspec.json.decode(line) for line in (SAMPLES / "reports.jsonl").read_bytes().splitlines()
]
_WRONG: Final = """
    chunk-prefix clojure-fn clojure-letfn dotnet-proxy dynamic-component hash-base32-letters hash-base36 hash-whole-name
    hash-whole-sveltekit import-failed jvm-ejb-view jvm-hibernate-optimizer jvm-javassist jvm-spark-stage kitchen-date
    mac-letters page-inline php-anonymous-class php-anonymous-exception php-release-folder py-ipykernel py-pyinstaller
    py-release-folder recursion-mutual safari-cancelled uncaught-prefix unicode-digits zod-json zod-json-nostack
    """
WRONG: Final = frozenset(_WRONG.split())
"""What isn't right yet; a case that becomes right has to leave."""


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])
def test_a_report_is_grouped_as_it_says(report: dict[str, Any]) -> None:
    issues: dict[int, list[int]] = {}
    for number, event in enumerate(report["events"]):
        issues.setdefault(grouped(event).hash, []).append(number)
    assert (sorted(issues.values()) == sorted(report["groups"])) == (report["name"] not in WRONG)
