"""Where workers keep their figures: in memory, and nowhere any more once their supervisor is gone."""

import os
from pathlib import Path

import pytest

from edge.edge_supervisor import create_metrics_folder, remove_stale_metrics

NOBODY = "4194305"
"""More than the highest number that Linux gives a process."""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    made = tmp_path / "memory"
    made.mkdir()
    return made


def test_figures_are_kept_in_memory_and_entered(tmp_path: Path, memory: Path) -> None:
    known = tmp_path / "metrics"
    directory = create_metrics_folder(known, memory)
    assert directory.parent == memory
    assert (known / str(os.getpid())).resolve() == directory
    (directory / "counter_1.db").touch()
    remove_stale_metrics(known)
    assert (list(memory.iterdir()), list(known.iterdir())) == ([], [])


def test_figures_are_kept_with_the_data_where_there_is_no_memory(tmp_path: Path) -> None:
    known = tmp_path / "metrics"
    directory = create_metrics_folder(known, tmp_path / "nowhere")
    assert directory == known / str(os.getpid())
    assert directory.is_dir()
    remove_stale_metrics(known)
    assert list(known.iterdir()) == []


def test_figures_of_a_killed_supervisor_are_removed_also_of_one_with_the_same_number(
    tmp_path: Path, memory: Path
) -> None:
    known = tmp_path / "metrics"
    left = create_metrics_folder(known, memory)
    (known / str(os.getpid())).rename(known / NOBODY)
    also_left = create_metrics_folder(known, memory)
    directory = create_metrics_folder(known, memory)
    assert not left.exists()
    assert not also_left.exists()
    assert list(memory.iterdir()) == [directory]
    remove_stale_metrics(known)


def test_folder_that_can_not_be_written_does_not_prevent_counting(tmp_path: Path, memory: Path) -> None:
    known = tmp_path / "metrics"
    known.write_bytes(b"in the way")
    assert create_metrics_folder(known, memory).is_dir()


def test_figures_of_a_living_supervisor_stay(tmp_path: Path, memory: Path) -> None:
    known = tmp_path / "metrics"
    other = create_metrics_folder(known, memory)
    (known / str(os.getpid())).rename(known / str(os.getppid()))
    remove_stale_metrics(known)
    assert other.is_dir()
