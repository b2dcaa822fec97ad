"""One user's events out of every table, while everything runs.

List their ids, wait until no block that holds one of them is under way, delete them week by week, and after each week build again what
the rollups say of the keys that they counted in. Whoever is killed leaves a list that the next run goes on with.
"""

import json
import uuid
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Final

import msgspec
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct
from msgspec.structs import replace

from schemas.ids import hex64, user_hash
from storage.client import Client, scalar
from storage.erase import ledger
from storage.erase.issues import IssueDescription, described, descriptions, redescribe
from storage.erase.ledger import Erasure
from storage.erase.purge import purge
from storage.erase.scope import WANTED, Scope, bucket, listed, sought
from storage.erase.sizes import TableReport, compared, measure
from storage.errors import UnknownUser
from storage.repair.consistent_read import in_a_pause
from storage.repair.repair_rollups import repair_where
from storage.repair.rollups import ROLLUPS, Rollup, difference

EVENT_TABLES: Final = ("payloads", "events")
TABLES: Final = (*EVENT_TABLES, *(rollup.table for rollup in ROLLUPS))
_TAGS_AT_ONCE: Final = 1_000_000
_QUIET_SECONDS: Final = 300.0
_WEEK: Final = timedelta(days=7)
_LIST: Final = """
    INSERT INTO erasing (erasure, project_id, id, fingerprint, ts, received)
    SELECT '{erasure}', project_id, id, fingerprint, ts, received FROM {events}"""
_LIST_TAGS: Final = """
    INSERT INTO erasing_tags (erasure, project_id, day, k, v)
    SELECT '{erasure}', {project}, day, k, v FROM {tags} GROUP BY day, k, v
    SETTINGS max_bytes_before_external_group_by = 134217728"""
_NEVER_AGAIN: Final = """
    INSERT INTO erased_events (project_id, id, day)
    SELECT project_id, id, today() FROM erasing WHERE erasure = {erasure:UUID}"""
_COUNT: Final = """
    INSERT INTO erased_counts (project_id, day, fingerprint, erasure, n)
    SELECT project_id, toDate(received) AS day, fingerprint, erasure, uniqExact(id) FROM erasing
    WHERE erasure = {erasure:UUID} GROUP BY project_id, day, fingerprint, erasure"""
_WEEKS: Final = """
    SELECT toMonday(ts) AS week, groupUniqArray(toDate(ts)) FROM erasing WHERE erasure = {erasure:UUID}
    GROUP BY week ORDER BY week"""
_LISTS: Final = """
    SELECT DISTINCT erasure FROM (SELECT erasure FROM erasing UNION DISTINCT SELECT erasure FROM erasing_tags)
    WHERE erasure IN
        (SELECT id FROM erasures FINAL WHERE stage = 'done' OR (stage = 'listing' AND begun < now() - INTERVAL 1 DAY))"""
_TAG_KEYS: Final = """
    SELECT count() FROM erasing_tags
    WHERE erasure = {erasure:UUID} AND day >= {week:Date} AND day < {next:Date}"""

Say = Callable[[str], None]
Tell = Callable[[str, list[IssueDescription]], None]


class UserReport(Struct, frozen=True, rename="camel", kw_only=True):
    """What was erased, or with `dry_run` would be. `issues` are those that the newest of the events described.

    `before` is when events of this user were erased last, where there was none this time.
    """

    project_id: str
    events: int
    tables: list[TableReport]
    issues: list[str] = []
    erasure: str = ""
    dry_run: bool = False
    before: str | None = None


def look(client: Client, project: int, user: str) -> UserReport:
    """Look for a user's events; changes nothing. Raises UnknownUser and ClickHouseError."""
    scope, external = sought(project), _external(project, user)
    sizes = measure(client, _conditions(scope), external)
    report = UserReport(
        project_id=str(project),
        events=sizes.rows["events"],
        tables=compared(TABLES, sizes, sizes),
        issues=[hex64(issue) for issue in described(client, scope, external)],
        dry_run=True,
    )
    if report.events:
        return report
    past = ledger.of_user(ledger.read(client, project), user)
    if not past:
        raise UnknownUser
    # Where one was interrupted, what it has listed may not be gone from every table.
    ended = past[-1].ended.isoformat() if all(one.stage == "done" for one in past) else None
    return replace(report, erasure=past[-1].id, before=ended)


def erase_user(
    client: Client, project: int, user: str, by: str, settle: Callable[[], None], tell: Tell, say: Say
) -> UserReport:
    """Erase a user's events; first what an earlier erasure of the project left undone. `by` is who erases.

    `settle` must return only when every block is written whose rows were, in part, to be seen when it was called; it may raise. `tell`
    gets the erasure's id and how issues are to be described from now on, for those who keep them; the same may be told again.
    Events that come later are new ones. Raises UnknownUser, ClickHouseError and its kinds NeverQuiet and MutationFails.
    """
    resumed = {report.erasure: report for report in resume(client, project, tell, say)}
    found = look(client, project, user)
    if not found.events:
        return resumed.get(found.erasure) or replace(found, dry_run=False)
    known = ledger.read(client, project)
    salt = ledger.salt_of(known)
    erasure = ledger.begin(client, project, "user", by, salt=salt, digest=ledger.digest(user, salt))
    say("listing the events")
    try:
        _list(client, erasure, user)
        settle()
    except BaseException:
        _drop_lists(client, erasure.id)
        raise
    return _erase(client, ledger.advance(client, erasure, "deleting"), tell, say)


def resume(client: Client, project: int, tell: Tell, say: Say) -> list[UserReport]:
    """Finish the erasures of users in a project that were begun and not ended. Raises as `erase_user`."""
    for (unused,) in client.query(_LISTS).result_rows:
        _drop_lists(client, str(unused))
    left = [one for one in ledger.read(client, project) if (one.kind, one.stage) == ("user", "deleting")]
    reports = []
    for erasure in left:
        say(f"going on with the erasure {erasure.id}")
        reports.append(_erase(client, erasure, tell, say))
    return reports


def _external(project: int, user: str) -> ExternalData:
    # Beside the query, not in it: the server's log of queries keeps their texts and parameters.
    row = json.dumps({"hash": str(user_hash(project, user)), "id": user}).encode()
    return ExternalData(file_name=WANTED, data=row, fmt="JSONEachRow", structure="hash UInt64, id String")


def _conditions(scope: Scope) -> dict[str, str]:
    return {table: scope.rows(table) for table in EVENT_TABLES} | {
        rollup.table: scope.keys(rollup) for rollup in ROLLUPS
    }


def _list(client: Client, erasure: Erasure, user: str) -> None:
    scope = sought(erasure.project)
    for sql in (_LIST, _LIST_TAGS):
        text = sql.format(erasure=erasure.id, project=scope.project, events=scope.events, tags=scope.tags)
        client.command(text, external_data=_external(erasure.project, user))


def _erase(client: Client, erasure: Erasure, tell: Tell, say: Say) -> UserReport:
    """Do what the lists say, from wherever an earlier run has got."""
    whole = listed(erasure.project, erasure.id)
    asked = {"erasure": erasure.id}
    # Before anything is gone: what is read again from the logs meanwhile must not bring it back.
    client.command(_NEVER_AGAIN, parameters=asked)
    before = measure(client, _conditions(whole))
    events = int(scalar(client, "SELECT uniqExact(id) FROM erasing WHERE erasure = {erasure:UUID}", asked))
    for week, days in client.query(_WEEKS, parameters=asked).result_rows:
        say(f"week of {week}")
        _erase_week(client, erasure, week, sorted(days))
    # Before the table says nothing of it any more: so a run that goes on tells it again.
    tell(erasure.id, descriptions(client, whole))
    issues = redescribe(client, whole, erasure.id)
    client.command(_COUNT, parameters=asked)
    after = measure(client, _conditions(whole))
    report = UserReport(
        project_id=str(erasure.project),
        events=events,
        tables=compared(TABLES, before, after),
        issues=[hex64(issue) for issue in issues],
        erasure=erasure.id,
    )
    # From here on it is the counts that tell what is missing, and no more the lists.
    ledger.advance(client, erasure, "done", msgspec.json.encode(report).decode())
    _drop_lists(client, erasure.id)
    return report


def _erase_week(client: Client, erasure: Erasure, week: date, days: list[date]) -> None:
    scope = listed(erasure.project, erasure.id, week)
    purge(client, {table: scope.rows(table) for table in EVENT_TABLES}, erasure.id)
    # Where there is no quiet moment now, there may be none to count again in: then nothing is deleted yet.
    in_a_pause(client, TABLES, lambda: None, _QUIET_SECONDS)
    # Deleted and at once counted again: in between, readers find these keys too low.
    for share in _shares(client, erasure, scope, week):
        purge(client, {rollup.table: share.keys(rollup) for rollup in ROLLUPS}, erasure.id, once=True)
        for rollup in ROLLUPS:
            _restore(client, rollup, share, days[0], days[-1])


def _shares(client: Client, erasure: Erasure, scope: Scope, week: date) -> list[Scope]:
    asked: dict[str, Any] = {"erasure": erasure.id, "week": week, "next": week + _WEEK}
    of = 1 + int(scalar(client, _TAG_KEYS, asked)) // _TAGS_AT_ONCE
    return [bucket(scope, number, of) for number in range(of)]


def _restore(client: Client, rollup: Rollup, share: Scope, first: date, last: date) -> None:
    """Count again, from what is left, the keys of these days: what has come in meanwhile is there already."""
    events, tags = share.counted(rollup, first, last)
    day = f"toDate({rollup.time})"
    there = f"{share.keys(rollup)} AND {day} >= '{first}' AND {day} <= '{last}'"
    sql = difference(rollup, events, there, where_tags=tags)
    # A name of its own each time: what an earlier run inserted may have been deleted again.
    repair_where(client, rollup, sql, f"erase/{uuid.uuid4()}", _QUIET_SECONDS)


def _drop_lists(client: Client, erasure: str) -> None:
    for table in ("erasing", "erasing_tags"):
        client.command(f"ALTER TABLE {table} DROP PARTITION '{erasure}'")
