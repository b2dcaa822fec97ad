"""Changes of issues without Kafka: made at once to what the reader in memory keeps."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from schemas.changes import Update, violations
from schemas.times import iso
from storage.project_edits import BadChange
from storage.reader.answers import ActivityRow, Issue
from tests.memory.reader import MemoryReader


class Asked(NamedTuple):
    """One call: its name, issue, what was given, who asked and the key."""

    call: str
    issue: str
    given: object
    by: str
    key: str


class MemoryChanges:
    """As `storage.issue_changes.IssueChanges`; `asked` are the calls. Merging is only written down."""

    def __init__(self, reader: MemoryReader) -> None:
        self._reader = reader
        self.asked: list[Asked] = []

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Status and whether it is assigned; told as activity."""
        shown = await self._reader.issue(issue)
        if wrong := violations(update):
            raise BadChange(wrong)
        self.asked.append(Asked("update", issue, update, by, key))
        state = self._reader.states[issue]
        if update.wanted is not None and update.wanted != state.status:
            state = msgspec.structs.replace(state, status=update.wanted, regressed=False)
            kind = "reopened" if update.wanted == "open" else update.wanted
            self._tell(shown, kind, by, {})
        if update.assignee is not msgspec.UNSET:
            state = msgspec.structs.replace(state, assigned=update.assignee is not None)
            self._tell(shown, "assigned", by, {"assignee": update.assignee})
        self._reader.states[issue] = state
        return await self._reader.issue(issue)

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """The same to each."""
        for issue in issues:
            if (await self._reader.issue(issue)).project_id != str(project):
                raise BadChange([])
        return [await self.update(issue, update, by=by, key=key) for issue in issues]

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Told as activity."""
        shown = await self._reader.issue(issue)
        self.asked.append(Asked("comment", issue, text, by, key))
        self._tell(shown, "commented", by, {"text": text})

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Only written down."""
        self.asked.append(Asked("merge", issue, tuple(issues), by, key))
        return await self._reader.issue(issue)

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Only written down."""
        self.asked.append(Asked("unmerge", issue, tuple(fingerprints), by, key))
        return await self._reader.issue(issue)

    def _tell(self, issue: Issue, kind: str, by: str, data: dict[str, object]) -> None:
        told = self._reader.changes[issue.id]
        at = iso(self._reader.now_ms())
        told.insert(
            0, ActivityRow(f"{len(told):04d}", kind, by, at, msgspec.Raw(msgspec.json.encode(data)), issue.id)
        )
