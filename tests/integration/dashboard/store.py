"""Events and issues in real tables, inserted as the writer inserts them.

The aggregator's functions apply each command immediately.
"""

import itertools
import json
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from control.issue_commands import Commands, forwarded_to, is_settled
from processors.aggregator.batch_changes import BatchChanges
from processors.aggregator.issue_fold import Fold
from processors.aggregator.issue_merges import RefusedChange
from schemas.change_records import Change
from schemas.chunks import ChunkEvent, Grouping
from schemas.errors import ChangesUnavailable
from schemas.ids import hex64, issue_id
from schemas.issues import Activity, Command, DeltaRecord, IssueRecord, Outcome, encode_json
from schemas.times import parse_iso
from storage.client import open_client
from storage.read.execute import Executor, Limits, Rows, Sql
from storage.read.reader import A, ReadCall, Reader
from storage.tables.event_columns import EventColumns
from storage.tables.record_rows import (
    CHANGES,
    ISSUE_ACTIVITY,
    ISSUES,
    OUTCOMES,
    activity_row,
    change_row,
    issue_row,
    outcome_row,
    table,
)
from tests.unit.dashboard import sample
from tests.unit.dashboard.sample import Sent

_DAYS = 3_650


class Store:
    """The tables of a database. `records` are the issues as the processors know them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.records: dict[str, IssueRecord] = {}
        self._client = open_client(url)
        self._is_sample = False

    def fill(self, now_ms: int, *, tame: bool = False) -> None:
        """Hold the sample and nothing else."""
        if self._is_sample:
            return
        for name in self._tables():
            self._client.command(f"TRUNCATE TABLE {name}")
        self.records.clear()
        self.add(sample.PROJECT, sample.events(now_ms, tame=tame))
        showcase = self.records[sample.issue_of(sample.SHOWCASE)]
        resolved = self.records[sample.issue_of(sample.RESOLVED)]
        self.put([_changed(showcase, regressed=True), _changed(resolved, status="resolved")])
        self.tell(sample.activities(now_ms))
        self.count(sample.outcomes(now_ms))
        self._is_sample = True

    def add(self, project: int, events: Iterable[Sent]) -> None:
        """Store events, and the issues of their fingerprints, which are new."""
        columns, lives = EventColumns(), dict[int, list[Sent]]()
        for sent in events:
            number = uuid.UUID(sent.event["id"]).bytes
            payload = json.dumps(sent.event).encode()
            chunk = ChunkEvent(project, number, sent.received_ms, sent.sdk, payload)
            columns.add_row(chunk, Grouping(sent.fingerprint, "1", "stack", tuple(sent.parts)), _DAYS, _DAYS)
            lives.setdefault(sent.fingerprint, []).append(sent)
        self._client.insert_arrow("ingest", columns.table())
        self.put([record(project, life) for life in lives.values()])

    def put(self, records: Sequence[IssueRecord]) -> None:
        """Store states of issues."""
        self._is_sample = False
        self.records |= {one.id: one for one in records}
        self._client.insert_arrow("issues", table(ISSUES, [issue_row(one) for one in records]))

    def tell(self, activities: Sequence[Activity]) -> None:
        """Store activities."""
        self._is_sample = False
        self._client.insert_arrow(
            "issue_activity", table(ISSUE_ACTIVITY, [activity_row(one) for one in activities])
        )

    def log_changes(self, changes: Sequence[Change]) -> None:
        """Store who changed what."""
        self._is_sample = False
        self._client.insert_arrow("changes", table(CHANGES, [change_row(one) for one in changes]))

    def count(self, outcomes: Sequence[Outcome]) -> None:
        """Store outcomes."""
        self._is_sample = False
        self._client.insert_arrow("outcomes", table(OUTCOMES, [outcome_row(one) for one in outcomes]))

    def damage(self, event: str, content: str = "no frame at all") -> None:
        """Replace the stored content of an event; usually by one that can't be read."""
        self._is_sample = False
        self._client.command(
            "ALTER TABLE payloads UPDATE payload = {content:String}, pack = 0 WHERE id = {id:UInt128}"
            " SETTINGS mutations_sync = 2",
            parameters={"id": uuid.UUID(event).int, "content": content},
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _tables(self) -> list[str]:
        text = (
            "SELECT name FROM system.tables"
            " WHERE database = currentDatabase() AND total_rows > 0 AND name != 'migrations'"
        )
        return [name for (name,) in self._client.query(text).result_rows]


def record(project: int, life: Sequence[Sent]) -> IssueRecord:
    """The record of an issue with these events."""
    ordered = sorted(life, key=lambda sent: (sent.event["timestamp"], sent.event["id"]))
    first, last = ordered[0], ordered[-1]
    top: dict[str, str] = next((frame for frame in last.event["error"]["stack"] if frame.get("inApp")), {})
    users = {(sent.event.get("user") or {}).get("id") for sent in life} - {None}
    return IssueRecord(
        id=hex64(issue_id(project, last.fingerprint)),
        project_id=str(project),
        fingerprints=(hex64(last.fingerprint),),
        error_type=last.event["error"]["type"],
        message=last.event["error"]["message"],
        culprit=" in ".join(filter(None, (top.get("function"), top.get("file")))),
        platforms=Counter(sent.event["platform"] for sent in life),
        first_seen_ms=parse_iso(first.event["timestamp"]),
        last_seen_ms=parse_iso(last.event["timestamp"]),
        events=len(life),
        users=len(users),
        releases=Counter(sent.event["release"] for sent in life),
        first_release=first.event["release"],
        last_release=last.event["release"],
        environments=Counter(sent.event.get("environment", "") for sent in life),
        last_event=last.event["id"],
        grouping_version="1",
        grouping_rule="stack",
        grouping_parts=tuple(last.parts),
        version=1,
    )


def _changed(known: IssueRecord, **fields: Any) -> IssueRecord:
    return replace(known, version=known.version + 1, **fields)


class AppliedCommands(Commands):
    """As `control.issue_commands.Commands`, without Kafka. `made` are the commands that were not repeats."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offsets = itertools.count(1)
        self.made: list[Command] = []
        self.failure: Exception | None = None
        """The error of each call once the change is made."""

    async def show(self, issues: Sequence[str]) -> dict[str, IssueRecord]:
        """As they are."""
        records = self._store.records
        if any(issue not in records for issue in issues):
            raise ChangesUnavailable("the processors did not answer in time; nothing was changed")
        return {issue: records[records[issue].merged_into or issue] for issue in issues}

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        """Immediately."""
        found = {}
        for command in commands:
            known = self._store.records[command.issue]
            self.made += [] if is_settled(known, command) and command.id in known.life.commands else [command]
            self._apply(DeltaRecord(command=command))
            known = self._store.records[command.issue]
            found[command.issue] = self._store.records[forwarded_to(known, command) or command.issue]
        if self.failure is not None:
            raise self.failure
        return found

    def _apply(self, delta: DeltaRecord) -> None:
        folds: dict[str, Fold] = {}

        def find(issue: str) -> Fold | None:
            known = self._store.records.get(issue)
            if issue not in folds and known is not None:
                folds[issue] = Fold.restore(encode_json(known))
            return folds.get(issue)

        def keep(fold: Fold) -> None:
            folds[fold.id] = fold

        changes, waiting = BatchChanges(), deque([delta])
        while waiting:
            one = waiting.popleft()
            with suppress(RefusedChange):
                if one.command is not None:
                    changes.command(next(self._offsets), one.command, find)
                elif one.signal is not None:
                    changes.signal(next(self._offsets), one.signal, find, keep)
            waiting += [following for _, following in changes.deltas]
            changes.deltas.clear()
        self._store.put([fold.record() for fold in changes.dirty.values()])
        if changes.activities:
            self._store.tell(changes.activities)


class WatchedExecutor(Executor):
    """An executor that remembers its statements."""

    def __init__(self, url: str) -> None:
        super().__init__([url], Limits())
        self.statements: list[str] = []

    async def rows(self, sql: Sql) -> Rows:
        """As the executor."""
        self.statements.append(sql.text)
        return await super().rows(sql)


class WatchedReader(Reader):
    """A reader that raises the errors of `failing` for calls of a type."""

    def __init__(self, url: str, now_ms: int) -> None:
        executor = WatchedExecutor(url)
        super().__init__(executor, lambda: now_ms)
        self.statements = executor.statements
        self.failing: dict[type[ReadCall[Any]], Exception] = {}
        self.calls: Counter[type[ReadCall[Any]]] = Counter()

    async def read(self, call: ReadCall[A]) -> A:
        """As the reader."""
        self.calls[type(call)] += 1
        if error := self.failing.get(type(call)):
            raise error
        return await super().read(call)
