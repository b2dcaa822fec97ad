"""The rollups for repair and reconciliation: their keys, and how they are computed from `events`."""

from typing import Final

from msgspec import Struct

_USERS: Final = "uniqCombinedStateIf(12)(user_hash, user_hash != 0)"


class Rollup(Struct, frozen=True):
    """A table of counts.

    `keys` are its key columns with their expressions over `events`, `states` its aggregates other than `n`.
    """

    table: str
    keys: tuple[tuple[str, str], ...]
    time: str
    states: tuple[str, ...]
    tags: bool = False

    @property
    def names(self) -> str:
        """The key columns, as a list in SQL."""
        return ", ".join(name for name, _ in self.keys)


_PROJECT: Final = ("project_id", "project_id")
_FINGERPRINT: Final = ("fingerprint", "fingerprint")
_DAY: Final = ("day", "toDate(ts)")
_HOUR: Final = ("hour", "toStartOfHour(ts)")
_RETENTION: Final = ("retention_days", "retention_days")

ROLLUPS: Final = (
    Rollup("issue_day", (_PROJECT, _DAY, _FINGERPRINT, _RETENTION), "day", ("first", "last", "users")),
    Rollup(
        "issue_day_er",
        (_PROJECT, _DAY, _FINGERPRINT, ("environment", "environment"), ("release", "release"), _RETENTION),
        "day",
        ("first", "last", "users"),
    ),
    Rollup("issue_hour", (_PROJECT, _HOUR, _FINGERPRINT, _RETENTION), "hour", ("users",)),
    Rollup("project_hour", (_PROJECT, _HOUR, _RETENTION), "hour", ("users",)),
    Rollup("tag_day", (_PROJECT, _DAY, ("k", "k"), ("v", "v"), _RETENTION), "day", (), tags=True),
)
"""Every rollup that the table `ingest` feeds."""

_FROM_EVENTS: Final = {"first": "min(ts)", "last": "max(ts)", "users": _USERS}
_FROM_ROLLUP: Final = {
    "first": "min(first)",
    "last": "max(last)",
    "users": "uniqCombinedMergeState(12)(users)",
}


def difference(
    rollup: Rollup, where_events: str, where_rollup: str, *, sums: bool = False, where_tags: str = ""
) -> str:
    """A query for the rows to insert so that the rollup equals `events` where the two conditions hold.

    `n` is the difference of the sums; it wraps if the rollup's sum is too high, which summing undoes. The
    states are those of the events, and merging them twice changes nothing. A key without events keeps its
    states. With `sums`, the query returns the two sums `e_n` and `r_n` instead of their difference.
    `where_tags` filters by the tags `k` and `v`, if the rollup has them.
    """
    keys, names = ", ".join(f"{sql} AS {name}" for name, sql in rollup.keys), rollup.names
    events = (
        f"(SELECT project_id, ts, tags, retention_days FROM events WHERE {where_events})"  # noqa: S608
        if rollup.tags
        else "events"
    )
    unfolded = (
        " ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v" + (where_tags and f" WHERE {where_tags}")
        if rollup.tags
        else f" WHERE {where_events}"
    )
    there = "".join(f", {_FROM_EVENTS[state]} AS e_{state}" for state in rollup.states)
    here = "".join(f", {_FROM_ROLLUP[state]} AS r_{state}" for state in rollup.states)
    states = "".join(f", if(e_n = 0, r_{state}, e_{state}) AS {state}" for state in rollup.states)
    wanted = "e_n, r_n" if sums else f"toUInt64(toInt64(e_n) - toInt64(r_n)) AS n{states}"
    return f"""
        SELECT {names}, {wanted}
        FROM (SELECT {keys}, count() AS e_n{there} FROM {events}{unfolded} GROUP BY {names}) AS e
        FULL OUTER JOIN
            (SELECT {names}, sum(n) AS r_n{here} FROM {rollup.table} WHERE {where_rollup} GROUP BY {names}) AS r
            USING ({names})
        WHERE e_n != r_n"""  # noqa: S608 - names of our own schema
