"""Which rows an erasure is about, as conditions in SQL: the same for a look before it and for the work itself. Pure."""

from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from storage.repair.rollups import Rollup

WANTED: Final = "wanted_user"
"""The external table of one row that holds a user's `hash` and `id`."""
_DAY: Final = timedelta(days=1)
_TAGS_OF_EVENTS: Final = """
    (SELECT toDate(ts) AS day, k, v FROM (SELECT ts, tags FROM {events})
     ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v)"""


class Scope(Struct, frozen=True):
    """Events of a project, as what stands behind FROM: `events` has their id, fingerprint and ts, `tags` their day, k and v."""

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
        """The rows of a rollup to which one of the events has contributed, or more: whatever has their times and issues."""
        names = ", ".join(name for name, _ in _told(rollup))
        return f"project_id = {self.project} AND ({names}) IN ({self._keys(rollup)})"

    def counted(self, rollup: Rollup, first: date, last: date) -> tuple[str, str]:
        """All events of some days that count in these rows: a condition on `events`, and one on tags where the rollup has them."""
        since, until = (f"toDateTime64('{when}', 3, 'UTC')" for when in (first, last + _DAY))
        where = f"project_id = {self.project} AND ts >= {since} AND ts < {until}"
        if rollup.tags:
            return where, f"(toDate(ts), k, v) IN ({self._keys(rollup)})"
        expressions = ", ".join(sql for _, sql in _told(rollup))
        where += f" AND ({expressions}) IN ({self._keys(rollup)})"
        if any(name == "fingerprint" for name, _ in rollup.keys):
            where += f" AND fingerprint IN (SELECT fingerprint FROM {self.events})"  # noqa: S608
        return where, ""

    def _keys(self, rollup: Rollup) -> str:
        if rollup.tags:
            return f"SELECT day, k, v FROM {self.tags}"  # noqa: S608 - our own names
        expressions = ", ".join(sql for _, sql in _told(rollup))
        return f"SELECT DISTINCT {expressions} FROM {self.events}"  # noqa: S608 - our own names


def sought(project: int) -> Scope:
    """The events of the user in `WANTED`, as they are stored now."""
    events = (
        f"events WHERE project_id = {project} AND user_hash IN (SELECT hash FROM {WANTED})"  # noqa: S608
        f" AND user_id IN (SELECT id FROM {WANTED})"
    )
    return Scope(project, events, _TAGS_OF_EVENTS.format(events=events))


def listed(project: int, erasure: str, week: date | None = None) -> Scope:
    """The events that stand in the lists of an erasure: all, or those of the week that begins with a Monday."""
    events, tags = f"erasing WHERE erasure = '{erasure}'", f"erasing_tags WHERE erasure = '{erasure}'"
    if week is not None:
        events, tags = f"{events} AND toMonday(ts) = '{week}'", f"{tags} AND toMonday(day) = '{week}'"
    return Scope(project, events, tags)


def bucket(scope: Scope, number: int, of: int) -> Scope:
    """A share of a listed scope's tags, so that what is looked up at once stays bounded."""
    return Scope(scope.project, scope.events, f"{scope.tags} AND cityHash64(k, v) % {of} = {number}")


def _told(rollup: Rollup) -> list[tuple[str, str]]:
    """The key columns that the lists know, with their expressions over `events`."""
    known = {rollup.time, "fingerprint"} | ({"k", "v"} if rollup.tags else set())
    return [(name, sql) for name, sql in rollup.keys if name in known]
