"""The statements of `svc rebuild`, on the model of ClickHouse: counts, rows and ids."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rebuild import from_clickhouse
from schemas.ids import is_uuid7, uuid7_ms
from schemas.issues import FINDINGS
from storage.maintain import rebuild_queries
from storage.maintain.reconcile import resend
from tests.simulation.clickhouse_tables import Event
from tests.simulation.packs import pack_of

if TYPE_CHECKING:
    from tests.simulation.clickhouse import Server
    from tests.simulation.clickhouse_work import Work

_DAY_MS = 86_400_000


class Rebuilding:
    """The source of the processors' rebuilt tables."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.statements: Mapping[str, Callable[..., Work]] = {
            rebuild_queries.SIZES: self._sizes,
            rebuild_queries.COUNTED: self._counted,
            rebuild_queries.ERASED_ISSUES: self._erased,
            rebuild_queries.ERASED_IDS: self._erased_ids,
            rebuild_queries.SHOWN: self._shown,
            resend.REMOVED: self._removed,
            rebuild_queries.CHANGES: self._changes,
            rebuild_queries.SINCE: self._since,
            rebuild_queries.RELEASES: self._releases,
            rebuild_queries.RECEIVED_DAYS: self._received_days,
            rebuild_queries.IDS: self._ids,
            from_clickhouse.PAYLOAD: self._payload,
        }

    def _events(self) -> list[Event]:
        return list(self._server.tables["events"].rows)

    def _sizes(self, *_: Any) -> "Work":
        yield 0.002
        return [[*row] for row in sorted(Counter(event.project for event in self._events()).items())]

    def _counted(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.002
        project, parts, part = parameters["project"], parameters["parts"], parameters["part"]
        groups: dict[int, list[Event]] = {}
        for event in sorted(self._events(), key=lambda event: (event.ts, event.number)):
            if event.project == project and event.fingerprint % parts == part:
                groups.setdefault(event.fingerprint, []).append(event)
        return [[fingerprint, *_counts(events)] for fingerprint, events in groups.items()]

    def _erased(self, *_: Any) -> "Work":
        yield 0.002
        found: Counter[tuple[int, int]] = Counter()
        for (project, _day, fingerprint), n in self._server.erasing.totals().items():
            found[project, fingerprint] += n
        return [[*pair, n] for pair, n in found.items()]

    def _erased_ids(self, *_: Any) -> "Work":
        yield 0.002
        today = self._server.today_ms() // _DAY_MS * _DAY_MS
        return [
            [project, int.from_bytes(number, "little"), today]
            for project, number in sorted(self._server.erasing.never_again)
        ]

    def _shown(self, *_: Any) -> "Work":
        yield 0.002
        rows = [row for _, row in self._server.latest["issues"].values() if not row["deleted"]]
        never_again = self._server.erasing.never_again
        rows = [
            {**row, "message": "", "last_event": bytes(16)}
            if (row["project_id"], row["last_event"]) in never_again
            else row
            for row in rows
        ]
        return [
            [
                *(row["project_id"], row["issue_id"], row["fingerprints"], row["error_type"], row["message"]),
                *(row["culprit"], row["status"], row["regressed"], _ms(row["first_seen"])),
                *(_ms(row["last_seen"]), row["events"], row["users"], row["first_release"]),
                *(row["last_release"], row["environments"], row["releases"], row["assignee"]),
                *(row["resolved_in"], row["ignore_until"], int.from_bytes(row["last_event"], "little")),
                *(row["grouping_version"], row["grouping_rule"], row["grouping_parts"]),
                *(row["merged_into"], row["version"], _ms(row["escalated"])),
            ]
            for row in sorted(rows, key=lambda row: (row["project_id"], row["issue_id"]))
        ]

    def _removed(self, *_: Any) -> "Work":
        yield 0.002
        return [[row["issue_id"]] for _, row in self._server.latest["issues"].values() if row["deleted"]]

    def _changes(self, *_: Any) -> "Work":
        yield 0.002
        rows = [
            row for _, row in self._server.latest["issue_activity"].values() if row["kind"] not in FINDINGS
        ]
        return [
            [
                *(row["issue_id"], _ms(row["at"]), row["id"], row["kind"]),
                "" if row["kind"] == "commented" else row["data"],
                row["version"],
            ]
            for row in sorted(rows, key=lambda row: (row["issue_id"], row["version"], row["at"], row["id"]))
        ]

    def _since(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.002
        events = [
            event
            for event in self._events()
            if event.project == parameters["project"]
            and event.fingerprint in parameters["fingerprints"]
            and _received(event) >= parameters["at"]
        ]
        return [[len(events), _users(events)]]

    def _releases(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.002
        first: dict[str, int] = {}
        for event in self._events():
            if event.project == parameters["project"] and event.column("release"):
                release = event.column("release")
                first[release] = min(first.get(release, 1 << 62), _ms(event.ts))
        return [[r] for at, r in sorted((at, r) for r, at in first.items()) if at <= parameters["at"]]

    def _received_days(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.002
        days = {_received(event) // _DAY_MS for event in self._events()}
        return [[day] for day in sorted(days, reverse=True)[: parameters["limit"]]]

    def _ids(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.002
        since = parameters["since"]
        return [
            [event.project, event.number, _received(event)]
            for event in self._events()
            if _received(event) >= since or _own_ms(event) >= since
        ]

    def _payload(self, parameters: Mapping[str, Any], _: Any) -> "Work":
        yield 0.001
        key = parameters["project"], parameters["id"]
        rows = self._server.tables["payloads"].rows
        found = [row for row in rows if (row.project, row.number) == key]
        return [[pack_of(row), row.column("payload")] for row in found[:1]]


def _ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def _received(event: Event) -> int:
    return _ms(event.column("received"))


def _own_ms(event: Event) -> int:
    identity = event.id[::-1]
    return uuid7_ms(identity) if is_uuid7(identity) else 0


def _users(events: list[Event]) -> list[int]:
    return sorted({event.column("user_hash") for event in events} - {0})


def _first(event: Event) -> tuple[datetime, str]:
    return event.ts, event.column("release")


def _counts(events: list[Event]) -> list[Any]:
    """The columns of a fingerprint; its events by time."""
    newest = events[-1]
    columns = ("release", "error_type", "message", "platform", "grouping_version", "grouping_rule")
    return [
        *(len(events), _ms(events[0].ts), _ms(newest.ts), max(map(_received, events))),
        *(min(events, key=_first).column("release"), (newest.number, *map(newest.column, columns))),
        *(dict(Counter(event.column(name) for event in events)) for name in columns[:1]),
        *(dict(Counter(event.column(name) for event in events)) for name in ("environment", "platform")),
        *(dict(Counter(_ms(event.ts) // 3_600_000 for event in events)), _users(events)),
    ]
