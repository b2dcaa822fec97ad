"""Status lines without a terminal."""

import io

from rich.console import Console

from local.board import Board
from runtime.supervisor import Status


def test_each_change_is_one_line() -> None:
    out = io.StringIO()
    board = Board(Console(file=out, width=40))
    status = Status("kafka")
    for state, pid in (("preparing", None), ("starting", 7), ("ready", 7), ("ready", 7), ("stopped", None)):
        status.state, status.pid = state, pid
        board.changed(status)
    assert [words.split()[:2] for words in out.getvalue().splitlines()] == [
        ["kafka", "starting"],
        ["kafka", "ready"],
        ["kafka", "stopped"],
    ]
