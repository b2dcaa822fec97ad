"""The status, assignee and findings of an issue, by simple rules of the test.

They follow from its commands and events in the order of the log.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from schemas.ids import hex64
from schemas.increments import Increment, decode_bundle, is_bundle
from schemas.issues import SYSTEM, Command, decode_delta
from schemas.times import parse_iso
from schemas.topics import Topic, topic_name
from tests.simulation.clickhouse import Server
from tests.simulation.kafka import Broker, Log
from tests.simulation.operations import RELEASES, Changes

_UNKNOWN: Final = "unknown"


class WrongStatus(Exception):
    """An issue has another status than the log says, or other findings."""


class _Issue:
    """The log's facts about an issue until now."""

    def __init__(self) -> None:
        self.status = "open"
        self.assignee: str | None = None
        self.fix: str | None = None
        self.until: Mapping[str, Any] = {}
        self.events = 0
        self.users: set[int] = set()
        self.commands: set[str] = set()
        self.positions: dict[int, int] = {}
        self.seen: set[tuple[str, str]] = set()
        self.found: Counter[tuple[str, str]] = Counter()

    def command(self, command: Command) -> None:
        """A user's change; a repeat changes nothing."""
        if command.id in self.commands:
            return
        self.commands.add(command.id)
        data = command.data
        if command.kind == "update" and "status" in data:
            self.status = data["status"]
            self.fix, self.until = data.get("resolvedIn"), data.get("ignoreUntil") or {}
            self.events, self.users = 0, set()
        elif command.kind == "update" and "assignee" in data:
            self.assignee = data["assignee"]
        elif command.kind == "redact" and data.get("wholly"):
            self.seen.clear()

    def increment(self, partition: int, offset: int, increment: Increment) -> None:
        """Events of a record; a repeat changes nothing."""
        if offset <= self.positions.get(partition, -1):
            return
        is_first = not self.positions
        self.positions[partition] = offset
        if is_first and increment.owner:
            self.assignee = increment.owner
            self.found["assigned", increment.owner] += 1
        named = {("seenInRelease", row.release) for row in increment.rows}
        named |= {("seenInEnvironment", row.environment) for row in increment.rows}
        self.found.update(one for one in named - self.seen if one[1] and not is_first)
        self.seen |= named
        if self.status == "resolved":
            fails = {_shows_failure(row.release, self.fix) for row in increment.rows}
            self.status = "open" if True in fails else _UNKNOWN if None in fails else self.status
        elif self.status == "ignored":
            self.events += increment.events
            self.users.update(increment.users)
            reached = (
                self.events >= self.until.get("events", 1 << 60)
                or len(self.users) >= self.until.get("users", 1 << 60)
                # Clocks are set back, too: an event may be received before a time that is long ago.
                or ("time" in self.until and increment.received_ms >= parse_iso(self.until["time"]))
            )
            self.status = "open" if reached else "ignored"


def _shows_failure(release: str, fix: str | None) -> bool | None:
    """Whether an event of a release shows that a fix failed; None where it takes more than their names to tell."""
    app = [name for name in RELEASES if name.startswith("app@")]
    if fix is None:
        return True
    return app.index(release) >= app.index(fix) if {release, fix} <= {*app} else None


def check_statuses(server: Server, broker: Broker, changes: Changes, *, is_rebuilt: bool) -> None:
    """Each issue has the status, assignee and findings that follow from the log, but for issues that were merged.

    Nothing is known of a partition whose log has expired, and after a rebuild. Raises WrongStatus.
    """
    found = changes.issues()
    published: dict[str, Counter[tuple[str, str]]] = {}
    for _, row in server.latest["issue_activity"].values():
        by_owner = row["kind"] == "assigned" and row["by"] == SYSTEM
        if by_owner or row["kind"] in {"seenInRelease", "seenInEnvironment"}:
            (name,) = msgspec.json.decode(row["data"]).values()
            published.setdefault(hex64(row["issue_id"]), Counter())[row["kind"], name] += 1
    for log in broker.topics[topic_name(Topic.ISSUE_DELTAS, "svc.", {})]:
        for number, issue in () if log.start or is_rebuilt else _issues(log):
            if issue.status not in {_UNKNOWN, found[number].status}:
                raise WrongStatus(f"{number} is {found[number].status}, not {issue.status}")
            if issue.assignee != found[number].assignee:
                raise WrongStatus(f"{number} is assigned to {found[number].assignee}, not {issue.assignee}")
            if published.get(number, Counter()) != issue.found:
                raise WrongStatus(f"{number} has published {published.get(number)}, not {issue.found}")


def _issues(log: Log) -> list[tuple[str, _Issue]]:
    issues: dict[str, _Issue] = {}
    merged = set[str]()
    for record in log.records:
        value = record.value or b""
        if is_bundle(value):
            for source in decode_bundle(value):
                for increment in source.increments:
                    issue = issues.setdefault(f"{increment.issue:016x}", _Issue())
                    issue.increment(source.partition, source.offset, increment)
        elif (delta := decode_delta(value)).signal is not None:
            merged |= {delta.signal.issue, delta.signal.sender}
        elif delta.command is not None and delta.command.issue in issues:
            issues[delta.command.issue].command(delta.command)
    return [(number, issue) for number, issue in issues.items() if number not in merged]
