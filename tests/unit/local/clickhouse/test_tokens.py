"""Pruning of insert tokens, on logs as MergeTree writes them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from local.clickhouse.tokens import PartName, parse_part, prune_tokens, valid_lines


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


def test_token_with_its_part_stays(tmp_path: Path) -> None:
    log = table(tmp_path, ["202601_1_1_0"], [entry("202601_1_1_0")])
    assert prune_tokens(tmp_path) == 0
    assert log.read_text() == entry("202601_1_1_0")


def test_token_whose_part_was_merged_into_another_stays(tmp_path: Path) -> None:
    table(tmp_path, ["202601_1_9_2"], [entry("202601_3_3_0"), entry("202601_9_9_0")])
    assert prune_tokens(tmp_path) == 0


def test_token_whose_part_was_never_renamed_into_place_goes(tmp_path: Path) -> None:
    lines = [entry("202601_1_1_0"), entry("202601_2_2_0", "lost")]
    log = table(tmp_path, ["202601_1_1_0", "tmp_insert_202601_2_2_0", "detached"], lines)
    assert prune_tokens(tmp_path) == 1
    assert log.read_text() == lines[0]


def test_part_of_another_partition_covers_nothing(tmp_path: Path) -> None:
    table(tmp_path, ["202602_1_9_1"], [entry("202601_2_2_0")])
    assert prune_tokens(tmp_path) == 1


def test_half_written_last_line_goes(tmp_path: Path) -> None:
    log = table(tmp_path, ["202601_1_1_0"], [entry("202601_1_1_0"), "1\t202601_1"])
    assert prune_tokens(tmp_path) == 1
    assert log.read_text() == entry("202601_1_1_0")


def test_entry_that_takes_a_token_back_stays_without_a_part() -> None:
    line = entry("202601_4_4_0", operation="2")
    assert valid_lines([line], []) == [line]


def test_directory_without_tables_is_no_error(tmp_path: Path) -> None:
    assert prune_tokens(tmp_path) == 0


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
