"""Pruning of insert tokens, on logs as MergeTree writes them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.clickhouse.insert_tokens import PartName, parse_part, prune_tokens, valid_lines


def entry(part: str, token: str = "202601_1_2", operation: str = "1") -> str:
    return f"{operation}\t{part}\t{token}\n"


def table(folder: Path, parts: list[str], lines: list[str]) -> Path:
    """A table's directory with empty parts and one deduplication log; the log."""
    home = folder / "data" / "store" / "0a1" / "0a1b2c3d"
    logs = home / "deduplication_logs"
    logs.mkdir(parents=True)
    for part in parts:
        (home / part).mkdir()
    log = logs / "deduplication_log_1.txt"
    log.write_text("".join(lines))
    return log


ONE, TWO, NINE = (entry(f"202601_{number}_{number}_0") for number in (1, 2, 9))
PRUNED = {
    "a token with its part stays": (["202601_1_1_0"], [ONE], [ONE]),
    "a part that was merged into another covers its token": (["202601_1_9_2"], [TWO, NINE], [TWO, NINE]),
    "a part that was never renamed into place covers nothing": (
        ["202601_1_1_0", "tmp_insert_202601_2_2_0", "detached"], [ONE, TWO], [ONE]
    ),
    "a part of another partition covers nothing": (["202602_1_9_1"], [TWO], []),
    "a half written last line goes": (["202601_1_1_0"], [ONE, "1\t202601_1"], [ONE]),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "lines", "left"), PRUNED.values(), ids=PRUNED)
def test_tokens_without_a_part_go(
    tmp_path: Path, parts: list[str], lines: list[str], left: list[str]
) -> None:
    assert prune_tokens(tmp_path) == 0, "without tables"
    log = table(tmp_path, parts, lines)
    assert prune_tokens(tmp_path) == len(lines) - len(left)
    assert log.read_text() == "".join(left)


def test_entry_that_takes_a_token_back_stays_without_a_part() -> None:
    line = entry("202601_4_4_0", operation="2")
    assert valid_lines([line], []) == [line]


def test_names_of_other_directories_are_no_parts() -> None:
    names = [
        "detached",
        "tmp_insert_all_1_1_0",
        "deduplication_logs",
        "moving",
        "delete_tmp_all_1_1_0",
        "all_1_1",
    ]
    assert [parse_part(name) for name in names] == [None] * len(names)
    assert parse_part("all_1_5_2_7") == PartName("all", 1, 5)


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_exactly_the_entries_without_a_part_go(blocks: list[tuple[int, bool]]) -> None:
    present = [PartName("all", number, number) for number, there in blocks if there]
    lines = [entry(f"all_{number}_{number}_0") for number, _ in blocks]
    covered = {part.first for part in present}
    assert valid_lines(lines, present) == [entry(f"all_{n}_{n}_0") for n, _ in blocks if n in covered]
