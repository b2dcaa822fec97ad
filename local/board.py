"""One status line a child: a live table while the children start on a terminal, plain lines otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from local.supervisor import Status

STYLES = {
    "ready": "green",
    "done": "green",
    "starting": "yellow",
    "unready": "red",
    "restarting": "red",
    "stopping": "yellow",
}


def line(status: Status) -> Text:
    """`kafka       ready       pid 123  restarted 2 times  detail`."""
    text = Text(f"{status.name:<12}").append(f"{status.state:<11}", STYLES.get(status.state, "dim"))
    if status.pid:
        text.append(f" pid {status.pid}", "dim")
    if status.restarts:
        text.append(f"  restarts {status.restarts}", "dim")
    if status.detail:
        text.append(f"  {status.detail}", "dim")
    return text


class Board:
    """Shows statuses as they change. `changed` is what a Supervisor calls."""

    def __init__(self, console: Console, statuses: dict[str, Status] | None = None) -> None:
        self._console = console
        self._statuses = dict(statuses or {})
        self._shown: dict[str, tuple[str, str]] = {}
        self._live: Live | None = None

    def changed(self, status: Status) -> None:
        """Show one child's new status."""
        self._statuses[status.name] = status
        if status.state == "preparing" and not self._live:
            return
        if self._live:
            self._live.update(self._table())
        elif (news := (status.state, status.detail)) != self._shown.get(status.name):
            self._shown[status.name] = news
            self._console.print(line(status), highlight=False, soft_wrap=True)

    @contextmanager
    def live(self) -> Iterator[None]:
        """On a terminal keep one table up to date meanwhile; it stays on the screen."""
        if not self._console.is_terminal:
            yield
            return
        try:
            with Live(self._table(), console=self._console, refresh_per_second=10) as self._live:
                yield
        finally:
            self._live = None

    def _table(self) -> Table:
        table = Table.grid()
        for status in self._statuses.values():
            table.add_row(line(status))
        return table
