"""Queries of erased events, for reconciliation and for re-inserts."""

from typing import Final

from storage.client import Client

ERASED: Final = """
    SELECT project_id, day, fingerprint, n FROM erased_counts FINAL
    WHERE (project_id, erasure) IN (SELECT project_id, id FROM erasures FINAL WHERE stage = 'done')
    UNION ALL
    SELECT project_id, toDate(received) AS day, fingerprint, uniqExact(id) AS n FROM erasing
    WHERE (project_id, erasure) IN (SELECT project_id, id FROM erasures FINAL WHERE stage = 'deleting')
        AND (project_id, id) NOT IN
        (
            SELECT project_id, id FROM events
            WHERE project_id IN (SELECT project_id FROM erasing) AND id IN (SELECT id FROM erasing)
        )
    GROUP BY project_id, day, fingerprint"""
"""Erased events by project, day of receipt and fingerprint. For an unfinished erasure: its listed events that
`events` no longer has."""

PROJECTS: Final = "SELECT project_id FROM erasures FINAL WHERE kind = 'project'"
ERASED_AMONG: Final = f"""
    SELECT project_id, id, 0 FROM erased_events
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)
    UNION ALL
    SELECT project_id, id, 0 FROM wanted WHERE project_id IN ({PROJECTS})"""  # noqa: S608 - our own text
"""The events of an external table `wanted` (project_id, id) that must not be re-inserted."""


def projects(client: Client) -> set[int]:
    """The projects that are erased or being erased. Raises ClickHouseError."""
    return {int(row[0]) for row in client.query(PROJECTS).result_rows}
