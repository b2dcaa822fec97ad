"""Changes of all issues that match a query, made in the background of this process; each can be undone.

The issues are changed through `IssueChanges`, some at a time, as selected ones are. A restart drops
unfinished changes; the issues changed until then stay changed.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import replace

from control.issue_changes import IssueChanges
from dashboard.http.http_errors import http_error_of, unavailable
from schemas.changes import MAX_ISSUES, IgnoreUntil, Update
from schemas.errors import ChangePending
from schemas.read_api import Issue
from storage.read.issues.issue_list import ListIssues
from storage.read.reader import MAX_LIMIT, Reader

log = logging.getLogger(__name__)

MAX_CHANGED: Final = 1_000
"""Issues of one change: the newest of those that match."""
MAX_RUNNING: Final = 4
_REMEMBERED: Final = 50


class BulkChange(Struct):
    """A running or finished change.

    `before` are its issues as they were; the first `done` of them are changed. `where` is the choice next
    to "Resolve".
    """

    project: int
    action: str
    where: str
    by: str
    before: list[Issue]
    done: int = 0
    error: str = ""
    is_running: bool = True


class BulkChanges:
    """The changes of this process, by their ids. The owner calls `cancel_changes` at the end."""

    def __init__(self) -> None:
        self._known: dict[str, BulkChange] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, project: int, number: str) -> BulkChange | None:
        """A change of a project; None if this process doesn't know it."""
        found = self._known.get(number)
        return found if found is not None and found.project == project else None

    def start(
        self, reader: Reader, changes: IssueChanges, change: BulkChange, call: ListIssues, update: Update
    ) -> str:
        """Change the issues of a list; returns the id. Raises HttpError if too many changes are running."""

        async def run() -> None:
            change.before = [issue async for issue in _listed(reader, call)]
            await _make(changes, change, [(update, change.before)])

        return self._start(change, run)

    def undo(self, changes: IssueChanges, made: BulkChange, by: str) -> str:
        """Restore the changed issues, as another change."""
        groups: dict[Update, list[Issue]] = {}
        for issue in made.before[: made.done]:
            groups.setdefault(_restoring(issue, made.action), []).append(issue)
        before = [issue for group in groups.values() for issue in group]
        change = BulkChange(made.project, "undo", "", by, before)
        return self._start(change, lambda: _make(changes, change, list(groups.items())))

    async def cancel_changes(self) -> None:
        """Cancel the unfinished changes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, change: BulkChange, run: Callable[[], Awaitable[None]]) -> str:
        if len(self._tasks) >= MAX_RUNNING:
            raise unavailable("other changes of many issues are being made: try again in a moment")
        number = secrets.token_hex(8)
        self._known[number] = change
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        task = asyncio.create_task(_run(change, run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return number


async def _run(change: BulkChange, run: Callable[[], Awaitable[None]]) -> None:
    """Run a change to its end, or to its first error."""
    try:
        await run()
    except Exception as exception:
        error = http_error_of(exception)
        if error is None:
            log.exception(
                "a bulk change stopped after %d issues, repeat it for the rest",
                change.done,
                extra={"event": "bulk_change_failed"},
            )
        change.error = "something went wrong; the log says what"
        if error is not None:
            details = [f"{detail.field}: {detail.message}" for detail in error.details or []]
            change.error = "; ".join(details) or error.sentence
    finally:
        change.is_running = False


async def _make(
    changes: IssueChanges, change: BulkChange, work: Sequence[tuple[Update, Sequence[Issue]]]
) -> None:
    for update, issues in work:
        for start in range(0, len(issues), MAX_ISSUES):
            some = [issue.id for issue in issues[start : start + MAX_ISSUES]]
            # One that is still pending was sent, and will be made.
            with suppress(ChangePending):
                await changes.update_many(change.project, some, update, by=change.by)
            change.done += len(some)


async def _listed(reader: Reader, call: ListIssues) -> AsyncIterator[Issue]:
    """The first issues of a list, up to `MAX_CHANGED`."""
    cursor, left = None, MAX_CHANGED
    while left:
        page = await reader.read(replace(call, limit=min(left, MAX_LIMIT), cursor=cursor))
        for issue in page.issues:
            yield issue
        left, cursor = left - len(page.issues), page.next_cursor
        if cursor is None:
            return


def _restoring(issue: Issue, action: str) -> Update:
    """The update that restores an issue as it was before a change."""
    if action == "assign":
        return Update(assignee=issue.assignee)
    match issue.status:
        case "resolved":
            return Update(status="resolved", resolved_in=issue.resolved_in)
        case "ignored":
            until = convert(issue.ignore_until, IgnoreUntil) if issue.ignore_until else None
            return Update(status="ignored", ignore_until=until)
    return Update(status="open")
