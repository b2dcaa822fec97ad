"""Erases one user's events from all tables, without stopping the service.

It lists their ids, waits until no block with one of them is in progress, and deletes them, from large tables week
by week. After each week it recomputes the rollup rows that counted them, for which writers pause. After a crash,
the next run resumes with the list.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from itertools import zip_longest
from typing import Any, Final

import msgspec
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct
from msgspec.structs import replace

from schemas.ids import hex64, user_hash
from storage.client import Client, scalar
from storage.errors import UnknownUser
from storage.exactly_once.consistent_read import read_in_pause
from storage.exactly_once.repair_rollups import repair_rollups, repair_where
from storage.exactly_once.unpacking import unpack
from storage.maintain.erase import ledger
from storage.maintain.erase.erase_scope import WANTED, Scope, bucket, listed_scope, stored_scope
from storage.maintain.erase.erased_issues import IssueDescription, described, descriptions, redescribe
from storage.maintain.erase.ledger import Erasure
from storage.maintain.erase.purge import SMALL_BYTES, purge
from storage.maintain.erase.sizes import Sizes, TableReport, added, compared, measure
from storage.shards import OpenServer, Servers
from storage.tables.rollups import ROLLUPS, Rollup, difference

EVENT_TABLES: Final = ("payloads", "events")
TABLES: Final = (*EVENT_TABLES, *(rollup.table for rollup in ROLLUPS))
_TAGS_AT_ONCE: Final = 1_000_000
_QUIET_SECONDS: Final = 300.0
_WEEK: Final = timedelta(days=7)
LIST: Final = """
    INSERT INTO erasing (erasure, project_id, id, fingerprint, ts, received)
    SELECT '{erasure}', project_id, id, fingerprint, ts, received FROM {events}"""
LIST_TAGS: Final = """
    INSERT INTO erasing_tags (erasure, project_id, day, k, v)
    SELECT '{erasure}', {project}, day, k, v FROM {tags} GROUP BY day, k, v
    SETTINGS max_bytes_before_external_group_by = 134217728"""
DROP_LIST: Final = "ALTER TABLE {table} DROP PARTITION '{erasure}'"
NEVER_AGAIN: Final = """
    INSERT INTO erased_events (project_id, id, day)
    SELECT project_id, id, today() FROM erasing WHERE erasure = {erasure:UUID}"""
COUNT: Final = """
    INSERT INTO erased_counts (project_id, day, fingerprint, erasure, n)
    SELECT project_id, toDate(received) AS day, fingerprint, erasure, uniqExact(id) FROM erasing
    WHERE erasure = {erasure:UUID} GROUP BY project_id, day, fingerprint, erasure"""
WEEKS: Final = """
    SELECT toMonday(ts) AS week, groupUniqArray(toDate(ts)) FROM erasing WHERE erasure = {erasure:UUID}
    GROUP BY week ORDER BY week"""
LISTS: Final = """
    SELECT DISTINCT erasure FROM (SELECT erasure FROM erasing UNION DISTINCT SELECT erasure FROM erasing_tags)
    WHERE erasure IN
        (SELECT id FROM erasures FINAL
         WHERE stage = 'done' OR (stage = 'listing' AND begun < now() - INTERVAL 1 DAY))"""
TAG_KEYS: Final = """
    SELECT count() FROM erasing_tags
    WHERE erasure = {erasure:UUID} AND day >= {week:Date} AND day < {next:Date}"""

Say = Callable[[str], None]
Tell = Callable[[str, list[IssueDescription]], None]


class UserReport(Struct, frozen=True, rename="camel", kw_only=True):
    """The erased data, or with `dry_run` the data that would be erased.

    `issues` are the issues that the events described. `erasure` is one id for each server, separated by
    spaces. `before` is the time of the user's last erasure, if there are no events now.
    """

    project_id: str
    events: int
    tables: list[TableReport]
    issues: list[str] = []
    erasure: str = ""
    dry_run: bool = False
    before: str | None = None


def preview(servers: Servers, project: int, user: str) -> UserReport:
    """Count a user's events; changes nothing. Raises UnknownUser and ClickHouseError."""
    report = _together([_preview(server.own, project, user) for server in servers])
    if report.events:
        return report
    of_servers = [ledger.of_user(ledger.read(server.own, project), user) for server in servers]
    erasures = [erasure for of_server in of_servers for erasure in of_server]
    if not erasures:
        raise UnknownUser
    # An interrupted erasure may have left listed events in some table.
    done = all(erasure.stage == "done" for erasure in erasures)
    ended = max(erasure.ended for erasure in erasures).isoformat() if done else None
    last = " ".join(of_server[-1].id for of_server in of_servers if of_server)
    return replace(report, erasure=last, before=ended)


def _preview(client: Client, project: int, user: str) -> UserReport:
    scope, external = stored_scope(project), _external(project, user)
    sizes = measure(client, _conditions(scope), external)
    return UserReport(
        project_id=str(project),
        events=sizes.rows["events"],
        tables=compared(TABLES, sizes, sizes),
        issues=[hex64(issue) for issue in described(client, scope, external)],
        dry_run=True,
    )


def _together(reports: Sequence[UserReport]) -> UserReport:
    """One report of all servers'."""
    return UserReport(
        project_id=reports[0].project_id,
        events=sum(report.events for report in reports),
        tables=added([report.tables for report in reports]),
        issues=sorted({issue for report in reports for issue in report.issues}),
        erasure=" ".join(report.erasure for report in reports if report.erasure),
        dry_run=reports[0].dry_run,
    )


def erase_user(
    servers: Servers, project: int, user: str, by: str, settle: Callable[[], None], tell: Tell, say: Say
) -> UserReport:
    """Erase a user's events, after resuming unfinished erasures of the project. `by` is the operator.

    `settle` must return only after all blocks that are partly visible at its call are fully written; it may
    raise. `tell` gets the id of a server's erasure and the new descriptions of issues, possibly repeatedly.
    Later events of the user are new events. Raises UnknownUser, and ClickHouseError with its subclasses
    NoConsistentRead and MutationFails.
    """
    resumed = {report.erasure: report for report in resume(servers, project, tell, say)}
    existing = preview(servers, project, user)
    if not existing.events:
        again = [resumed[erasure] for erasure in existing.erasure.split() if erasure in resumed]
        return _together(again) if again else replace(existing, dry_run=False)
    salt = ledger.salt_of(erasure for server in servers for erasure in ledger.read(server.own, project))
    digest = ledger.digest(user, salt)
    begun: list[tuple[OpenServer, Erasure]] = []
    say("listing the events")
    try:
        for server in servers:
            erasure = ledger.begin(server.own, project, "user", by, salt=salt, digest=digest)
            begun.append((server, erasure))
            _list(server.own, erasure, user)
        settle()
    except BaseException:
        for server, erasure in begun:
            _drop_lists(server.own, erasure.id)
        raise
    listed = [(server, ledger.advance(server.own, erasure, "deleting")) for server, erasure in begun]
    return _together(_erase(servers, listed, tell, say))


def resume(servers: Servers, project: int, tell: Tell, say: Say) -> list[UserReport]:
    """Finish the unfinished erasures of users of a project. Raises as `erase_user`."""
    begun: list[list[tuple[OpenServer, Erasure]]] = []
    for server in servers:
        for (unused,) in server.own.query(LISTS).result_rows:
            _drop_lists(server.own, str(unused))
        unfinished = [
            erasure
            for erasure in ledger.read(server.own, project)
            if (erasure.kind, erasure.stage) == ("user", "deleting")
        ]
        for erasure in unfinished:
            say(f"resuming the erasure {erasure.id}")
        begun.append([(server, erasure) for erasure in unfinished])
    # Of each server one at a time.
    rounds = [[one for one in some if one is not None] for some in zip_longest(*begun)]
    return [report for some in rounds for report in _erase(servers, some, tell, say)]


def _external(project: int, user: str) -> ExternalData:
    # Sent as external data, because the server's query log has the query's text and parameters.
    row = json.dumps({"hash": str(user_hash(project, user)), "id": user}).encode()
    return ExternalData(file_name=WANTED, data=row, fmt="JSONEachRow", structure="hash UInt64, id String")


def _conditions(scope: Scope) -> dict[str, str]:
    return {table: scope.rows(table) for table in EVENT_TABLES} | {
        rollup.table: scope.keys(rollup) for rollup in ROLLUPS
    }


def _list(client: Client, erasure: Erasure, user: str) -> None:
    scope = stored_scope(erasure.project)
    for sql in (LIST, LIST_TAGS):
        text = sql.format(erasure=erasure.id, project=scope.project, events=scope.events, tags=scope.tags)
        client.command(text, external_data=_external(erasure.project, user))


def _erase(
    servers: Servers, begun: Sequence[tuple[OpenServer, Erasure]], tell: Tell, say: Say
) -> list[UserReport]:
    """Erase the listed events of servers, from the start or after an interruption.

    The servers work in parallel.
    """
    if len(begun) == 1:
        # Without a thread, which an operator's Ctrl-C would wait for.
        deleted = [_delete(server.own, erasure, say) for server, erasure in begun]
    else:
        with ThreadPoolExecutor(len(begun)) as threads:
            deleted = list(threads.map(lambda one: _delete(one[0].own, one[1], say), begun))
    return [
        _finish(servers, server, erasure, tell, *counted)
        for (server, erasure), counted in zip(begun, deleted, strict=True)
    ]


def _delete(client: Client, erasure: Erasure, say: Say) -> tuple[int, Sizes]:
    """Delete the listed events; returns how many there are, and the sizes of the tables before."""
    parameters = {"erasure": erasure.id}
    # Before the first deletion: records that are re-read meanwhile must not re-insert the events.
    client.command(NEVER_AGAIN, parameters=parameters)
    before = measure(client, _conditions(listed_scope(erasure.project, erasure.id)))
    events = int(
        scalar(client, "SELECT uniqExact(id) FROM erasing WHERE erasure = {erasure:UUID}", parameters)
    )
    weeks = [(week, sorted(days)) for week, days in client.query(WEEKS, parameters=parameters).result_rows]
    together = [[week] for week in weeks]
    if weeks and sum(before.bytes.values()) <= SMALL_BYTES:
        together = [weeks]
    for some in together:
        say(f"weeks from {some[0][0]} to {some[-1][0]}")
        _erase_week(client, erasure, [week for week, _ in some], [day for _, days in some for day in days])
    return events, before


def _finish(
    servers: Servers, server: OpenServer, erasure: Erasure, tell: Tell, events: int, before: Sizes
) -> UserReport:
    """Update the descriptions of the issues, count the deleted rows, and end the erasure."""
    client, whole = server.own, listed_scope(erasure.project, erasure.id)
    # Before the tables change: a resumed run sends the same again.
    tell(erasure.id, descriptions(server.whole, whole))
    issues = {issue for each in servers for issue in redescribe(each, whole, erasure.id)}
    client.command(COUNT, parameters={"erasure": erasure.id})
    after = measure(client, _conditions(whole))
    report = UserReport(
        project_id=str(erasure.project),
        events=events,
        tables=compared(TABLES, before, after),
        issues=[hex64(issue) for issue in sorted(issues)],
        erasure=erasure.id,
    )
    # From here on, reconciliation uses the counts instead of the lists.
    ledger.advance(client, erasure, "done", msgspec.json.encode(report).decode())
    _drop_lists(client, erasure.id)
    return report


def _erase_week(client: Client, erasure: Erasure, weeks: Sequence[date], days: Sequence[date]) -> None:
    """Erase the listed events of a week, or of several where tables are small."""
    scope = listed_scope(erasure.project, erasure.id, weeks)
    _delete_events(client, scope, erasure)
    # Nothing is deleted from the rollups unless a consistent read, which the recount needs, is possible now.
    read_in_pause((client,), TABLES, lambda _: None, _QUIET_SECONDS)
    # A repetition of a block that was being inserted: a part that a deletion empties no longer has the block's token.
    _delete_events(client, scope, erasure)
    # Recounted right after the deletion: in between, readers see too low counts.
    for share in _shares(client, erasure, scope, weeks):
        purge(client, {rollup.table: share.keys(rollup) for rollup in ROLLUPS}, erasure.id, once=True)
        # Events inserted since the deletion are counted already.
        queries = {rollup: _remaining(rollup, share, days[0], days[-1]) for rollup in ROLLUPS}
        # A unique name, because rows that an earlier run inserted may have been deleted since.
        repair_where(client, queries, _QUIET_SECONDS)
    if _is_done(client, erasure):
        # By another run at the same time, which has dropped the lists: this run may have deleted rows that
        # the other had recounted.
        repair_rollups(client, {(erasure.project, day) for day in days})


def _delete_events(client: Client, scope: Scope, erasure: Erasure) -> None:
    def delete(where: str) -> None:
        purge(client, {"payloads": where}, erasure.id)

    unpack(client, scope.rows("payloads"), delete)
    purge(client, {table: scope.rows(table) for table in EVENT_TABLES}, erasure.id)


def _is_done(client: Client, erasure: Erasure) -> bool:
    known = ledger.read(client, erasure.project)
    return any((other.id, other.stage) == (erasure.id, "done") for other in known)


def _shares(client: Client, erasure: Erasure, scope: Scope, weeks: Sequence[date]) -> list[Scope]:
    parameters: dict[str, Any] = {"erasure": erasure.id, "week": weeks[0], "next": weeks[-1] + _WEEK}
    of = 1 + int(scalar(client, TAG_KEYS, parameters)) // _TAGS_AT_ONCE
    return [bucket(scope, number, of) for number in range(of)]


def _remaining(rollup: Rollup, share: Scope, first: date, last: date) -> str:
    """A query for the counts of the remaining events of these days that the rollup lacks."""
    events, tags = share.counted(rollup, first, last)
    day = f"toDate({rollup.time})"
    there = f"{share.keys(rollup)} AND {day} >= '{first}' AND {day} <= '{last}'"
    return difference(rollup, events, there, where_tags=tags)


def _drop_lists(client: Client, erasure: str) -> None:
    for table in ("erasing", "erasing_tags"):
        client.command(DROP_LIST.format(table=table, erasure=erasure))
