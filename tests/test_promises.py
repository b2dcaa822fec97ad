"""Tests name the section of the protocol or the contract that they hold, with the marker `holds`."""

import re
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
MARKER: Final = re.compile(r"^@pytest\.mark\.holds\((.*?)\)$", re.MULTILINE | re.DOTALL)
PROTOCOL: Final = (
    *(f"2.{number}" for number in (*range(1, 10), 11)),
    *("4", "4.1", "4.2", "4.3", "5", "7", "8", "9.1", "9.3", "9.5"),
)
READING: Final = (
    *("projects", "issues", "issue", "bulk", "merge", "activity", "events", "tags", "stats", "releases"),
    *("outcomes", "rules", "Issue", "language"),
)


def test_every_section_is_held_by_a_test() -> None:
    files = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    held = {
        name for text in files for marked in MARKER.findall(text) for name in re.findall('"(.*?)"', marked)
    }
    assert held == {
        *(f"protocol {section}" for section in PROTOCOL),
        # Point 10 is about the stages after ingest.
        *(f"contract 2.{point}" for point in range(1, 15) if point != 10),
        *("contract 4", *(f"contract 4 {subject}" for subject in READING)),
    }
