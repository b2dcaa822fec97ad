"""The views that analysts read, and their definer.

The definer is a dedicated user bound by row policies, if the server has it.
"""

from typing import Final

from storage.client import ClickHouseError, Client, scalar

VIEWS: Final = (
    "analyst_events",
    "analyst_issues",
    "analyst_issue_activity",
    "analyst_changes",
    "analyst_outcomes",
    "analyst_issue_day",
    "analyst_issue_release_day",
    "analyst_release_day",
    "analyst_issue_hour",
    "analyst_project_hour",
    "analyst_tag_day",
    "analyst_projects",
    "analyst_issue_day_states",
    "analyst_issue_release_day_states",
    "analyst_release_day_states",
    "analyst_issue_hour_states",
    "analyst_project_hour_states",
)
"""Everything that an analyst can read; each view has a column `project_id`."""
TABLES: Final = (
    *("events", "issues", "issue_activity", "changes", "outcomes"),
    *("issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day", "projects"),
)
"""The tables that the views read, apart from the view `issue_of`; row policies are on them."""
DEFINER: Final = "analyst_views"
"""The definer of the views in the service's database, if the server has this user and grants SET DEFINER."""
_UNKNOWN_USER: Final = 192
_READS_AS: Final = "DEFINER = CURRENT_USER"


def create(client: Client, statement: str) -> None:
    """Run a statement of a migration; a view gets `DEFINER` at its creation, if possible.

    A replaced view would otherwise show all rows until `own_views` has run. Raises ClickHouseError.
    """
    if _READS_AS in statement and _may_name_definer(client):
        try:
            client.command(statement.replace(_READS_AS, f"DEFINER = {DEFINER}", 1))
        except ClickHouseError as error:
            if getattr(error, "code", None) != _UNKNOWN_USER:
                raise
        else:
            return
    client.command(statement)


def _may_name_definer(client: Client) -> bool:
    return bool(scalar(client, f"CHECK GRANT SET DEFINER ON {DEFINER}"))


def own_views(client: Client) -> None:
    """Make `DEFINER` the definer of the views, if possible. Raises ClickHouseError."""
    if not _may_name_definer(client):
        return
    others = client.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND name IN {views:Array(String)}"
        " AND definer != {definer:String}",
        parameters={"views": list(VIEWS), "definer": DEFINER},
    )
    for (view,) in others.result_rows:
        try:
            client.command(f"ALTER TABLE {view} MODIFY SQL SECURITY DEFINER DEFINER = {DEFINER}")
        except ClickHouseError as error:
            # A user with all grants may name a user that doesn't exist.
            if getattr(error, "code", None) == _UNKNOWN_USER:
                return
            raise
