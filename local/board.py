"""One status line per child: a live table during the start on a terminal, plain lines otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runtime.supervisor import Status

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
    """Prints status changes; pass `changed` to a Supervisor."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._statuses: dict[str, Status] = {}
        self._printed: dict[str, tuple[str, str]] = {}
        self._live: Live | None = None

    def changed(self, status: Status) -> None:
        self._statuses[status.name] = status
        if status.state == "preparing" and not self._live:
            return
        if self._live:
            self._live.update(self._table())
        elif (current := (status.state, status.detail)) != self._printed.get(status.name):
            self._printed[status.name] = current
            self._console.print(line(status), highlight=False, soft_wrap=True)

    @contextmanager
    def live(self) -> Iterator[None]:
        """On a terminal, update one table inside the block; it stays on the screen."""
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
