"""Changes of issues without Kafka: made at once to what the reader in memory keeps."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from control.issue_changes import IssueChanges
from schemas.changes import Update, violations
from schemas.errors import BadChange
from schemas.idempotency import is_repeat, request_id
from schemas.times import iso
from storage.reader.answers import ActivityRow, Issue
from storage.reader.issue_calls import GetIssue
from tests.memory.reader import MemoryReader


class Asked(NamedTuple):
    """One call: its name, issue, what was given, who asked and the key."""

    call: str
    issue: str
    given: object
    by: str
    key: str


class MemoryChanges(IssueChanges):
    """As `control.issue_changes.IssueChanges`; `asked` are the calls that were made. Merging is only written down."""

    def __init__(self, reader: MemoryReader) -> None:
        self._memory = reader
        self.asked: list[Asked] = []
        self.failure: Exception | None = None
        """What each call raises once the change is asked for."""
        self._requests: dict[str, list[str]] = defaultdict(list)

    async def find(self, issues: Sequence[str]) -> list[Issue]:
        """As the reader keeps them."""
        return [await self._memory.read(GetIssue(issue)) for issue in issues]

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Status and whether it is assigned; told as activity."""
        shown = await self._memory.read(GetIssue(issue))
        if wrong := violations(update):
            raise BadChange(wrong)
        if self._is_repeat(Asked("update", issue, update, by, key)):
            return await self._memory.read(GetIssue(issue))
        state = self._memory.states[issue]
        if update.wanted is not None and update.wanted != state.status:
            state = msgspec.structs.replace(state, status=update.wanted, regressed=False)
            kind = "reopened" if update.wanted == "open" else update.wanted
            self._tell(shown, kind, by, {})
        if update.assignee is not msgspec.UNSET:
            state = msgspec.structs.replace(state, assignee=update.assignee or "")
            self._tell(shown, "assigned", by, {"assignee": update.assignee})
        self._memory.states[issue] = state
        return await self._memory.read(GetIssue(issue))

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """The same to each."""
        for issue in issues:
            if (await self._memory.read(GetIssue(issue))).project_id != str(project):
                raise BadChange([])
        return [await self.update(issue, update, by=by, key=key) for issue in issues]

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Told as activity."""
        shown = await self._memory.read(GetIssue(issue))
        if not self._is_repeat(Asked("comment", issue, text, by, key)):
            self._tell(shown, "commented", by, {"text": text})

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Only written down."""
        self._is_repeat(Asked("merge", issue, tuple(issues), by, key))
        return await self._memory.read(GetIssue(issue))

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Only written down."""
        self._is_repeat(Asked("unmerge", issue, tuple(fingerprints), by, key))
        return await self._memory.read(GetIssue(issue))

    def _is_repeat(self, asked: Asked) -> bool:
        """Whether it is made already; else write it down. Raises KeyReused."""
        request = request_id(asked.key, asked.issue, asked.call, asked.given)
        known = self._requests[asked.issue]
        if is_repeat(request, known):
            return True
        known += [request] if request else []
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        return False

    def _tell(self, issue: Issue, kind: str, by: str, data: dict[str, object]) -> None:
        told = self._memory.changes[issue.id]
        at = iso(self._memory.now_ms())
        told.insert(
            0, ActivityRow(f"{len(told):04d}", kind, by, at, msgspec.Raw(msgspec.json.encode(data)), issue.id)
        )
