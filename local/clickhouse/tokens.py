"""Forget insert tokens whose part never came to be, while the server is down.

MergeTree writes an insert's token to `deduplication_logs/*.txt` and only then renames `tmp_insert_<part>` to `<part>`. A kill between the two
leaves the token without its rows: the insert's repetition would be dropped as a duplicate and its rows be lost for ever.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DROPPED = "2"  # an entry that takes a token back; 1 adds one
FIELDS = 3  # operation, part, token


class PartName(NamedTuple):
    """The blocks that a part covers: `partition_first_last_level`."""

    partition: str
    first: int
    last: int

    def covers(self, other: "PartName") -> bool:
        """True when the other part's blocks are all in this one, as after a merge."""
        return self.partition == other.partition and self.first <= other.first and other.last <= self.last


def parse_part(name: str) -> PartName | None:
    """The part of a directory's name, or None for another directory (`detached`, `tmp_insert_...`)."""
    fields = name.split("_")
    if len(fields) not in {4, 5} or not all(field.isdigit() for field in fields[1:]):
        return None
    return PartName(fields[0], int(fields[1]), int(fields[2]))


def valid_lines(lines: Iterable[str], parts: list[PartName]) -> list[str]:
    """The entries of a deduplication log that are whole and whose part is there, or that take a token back."""

    def stays(line: str) -> bool:
        fields = line.split("\t")
        if len(fields) != FIELDS or not line.endswith("\n"):
            return False
        part = parse_part(fields[1])
        return fields[0] == DROPPED or (part is not None and any(present.covers(part) for present in parts))

    return [line for line in lines if stays(line)]


def prune_tokens(directory: Path) -> int:
    """Rewrite the deduplication logs under the engine's data in `directory`; how many entries went."""
    gone = 0
    for logs in directory.glob("data/store/*/*/deduplication_logs"):
        parts = [
            part for entry in logs.parent.iterdir() if entry.is_dir() and (part := parse_part(entry.name))
        ]
        for log in logs.glob("deduplication_log_*.txt"):
            lines = log.read_text().splitlines(keepends=True)
            kept = valid_lines(lines, parts)
            if len(kept) != len(lines):
                gone += len(lines) - len(kept)
                written = log.with_suffix(".new")
                written.write_text("".join(kept))
                written.replace(log)
    return gone
