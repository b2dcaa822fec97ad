"""The rows of an erasure as SQL conditions, used by the preview and by the erasure itself. Pure."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from storage.tables.rollups import Rollup

WANTED: Final = "wanted_user"
"""The external table with a user's `hash` and `id`."""
_DAY: Final = timedelta(days=1)
_TAGS_OF_EVENTS: Final = """
    (SELECT toDate(ts) AS day, k, v FROM (SELECT ts, tags FROM {events})
     ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v)"""


class Scope(Struct, frozen=True):
    """Events of a project, for use after FROM.

    `events` has their id, fingerprint and ts, `tags` their day, k and v.
    """

    project: int
    events: str
    tags: str

    def rows(self, table: str) -> str:
        """The rows of `events` or `payloads`."""
        where = f"project_id = {self.project} AND id IN (SELECT id FROM {self.events})"  # noqa: S608 - our own names
        if table != "events":
            return where
        return f"{where} AND fingerprint IN (SELECT fingerprint FROM {self.events})"  # noqa: S608

    def keys(self, rollup: Rollup) -> str:
        """A superset of the rollup rows that count the events: those with their times and issues."""
        names = ", ".join(name for name, _ in _listed_keys(rollup))
        return f"project_id = {self.project} AND ({names}) IN ({self._keys(rollup)})"

    def counted(self, rollup: Rollup, first: date, last: date) -> tuple[str, str]:
        """All events of some days that these rollup rows count.

        Returns a condition on `events`, and one on tags if the rollup has them.
        """
        since, until = (f"toDateTime64('{when}', 3, 'UTC')" for when in (first, last + _DAY))
        where = f"project_id = {self.project} AND ts >= {since} AND ts < {until}"
        if rollup.tags:
            return where, f"(toDate(ts), k, v) IN ({self._keys(rollup)})"
        expressions = ", ".join(sql for _, sql in _listed_keys(rollup))
        where += f" AND ({expressions}) IN ({self._keys(rollup)})"
        if any(name == "fingerprint" for name, _ in rollup.keys):
            where += f" AND fingerprint IN (SELECT fingerprint FROM {self.events})"  # noqa: S608
        return where, ""

    def _keys(self, rollup: Rollup) -> str:
        if rollup.tags:
            return f"SELECT day, k, v FROM {self.tags}"  # noqa: S608 - our own names
        expressions = ", ".join(sql for _, sql in _listed_keys(rollup))
        return f"SELECT DISTINCT {expressions} FROM {self.events}"  # noqa: S608 - our own names


def stored_scope(project: int) -> Scope:
    """The events of the user in `WANTED`, as they are stored now."""
    events = (
        f"events WHERE project_id = {project} AND user_hash IN (SELECT hash FROM {WANTED})"  # noqa: S608
        f" AND user_id IN (SELECT id FROM {WANTED})"
    )
    return Scope(project, events, _TAGS_OF_EVENTS.format(events=events))


def listed_scope(project: int, erasure: str, weeks: Sequence[date] = ()) -> Scope:
    """The listed events of an erasure: all, or those of the weeks that start on these Mondays."""
    events, tags = f"erasing WHERE erasure = '{erasure}'", f"erasing_tags WHERE erasure = '{erasure}'"
    if weeks:
        mondays = ", ".join(f"'{week}'" for week in weeks)
        events, tags = f"{events} AND toMonday(ts) IN ({mondays})", f"{tags} AND toMonday(day) IN ({mondays})"
    return Scope(project, events, tags)


def bucket(scope: Scope, number: int, of: int) -> Scope:
    """A share of a listed scope's tags, to bound the size of a lookup."""
    return Scope(scope.project, scope.events, f"{scope.tags} AND cityHash64(k, v) % {of} = {number}")


def _listed_keys(rollup: Rollup) -> list[tuple[str, str]]:
    """The key columns that the lists have, with their expressions over `events`."""
    known = {rollup.time, "fingerprint"} | ({"k", "v"} if rollup.tags else set())
    return [(name, sql) for name, sql in rollup.keys if name in known]
