"""Removes insert tokens of parts that were never committed, while the server is down.

MergeTree writes an insert's token to `deduplication_logs/*.txt` and only then renames `tmp_insert_<part>` to `<part>`.
A kill between the two leaves a token without rows: a retry of the insert would be dropped as a duplicate and its rows
lost.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DROPPED = "2"  # an entry that removes a token; 1 adds one
FIELDS = 3  # operation, part, token


class PartName(NamedTuple):
    """The blocks that a part covers: `partition_first_last_level`."""

    partition: str
    first: int
    last: int

    def covers(self, other: "PartName") -> bool:
        """True if this part contains all blocks of the other one, as after a merge."""
        return self.partition == other.partition and self.first <= other.first and other.last <= self.last


def parse_part(name: str) -> PartName | None:
    """Parse a part directory's name; None for other directories (`detached`, `tmp_insert_...`)."""
    fields = name.split("_")
    if len(fields) not in {4, 5} or not all(field.isdigit() for field in fields[1:]):
        return None
    return PartName(fields[0], int(fields[1]), int(fields[2]))


def valid_lines(lines: Iterable[str], parts: list[PartName]) -> list[str]:
    """The complete entries of a deduplication log that remove a token or whose part exists."""

    def is_valid(line: str) -> bool:
        fields = line.split("\t")
        if len(fields) != FIELDS or not line.endswith("\n"):
            return False
        part = parse_part(fields[1])
        return fields[0] == DROPPED or (part is not None and any(present.covers(part) for present in parts))

    return [line for line in lines if is_valid(line)]


def prune_tokens(directory: Path) -> int:
    """Rewrite the deduplication logs in the engine's data under `directory`; the number of removed entries."""
    removed = 0
    for logs in directory.glob("data/store/*/*/deduplication_logs"):
        parts = [
            part for entry in logs.parent.iterdir() if entry.is_dir() and (part := parse_part(entry.name))
        ]
        for log in logs.glob("deduplication_log_*.txt"):
            lines = log.read_text().splitlines(keepends=True)
            valid = valid_lines(lines, parts)
            if len(valid) != len(lines):
                removed += len(lines) - len(valid)
                new = log.with_suffix(".new")
                new.write_text("".join(valid))
                new.replace(log)
    return removed
