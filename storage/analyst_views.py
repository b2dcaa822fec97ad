"""The views that analysts read, and who they read as: a user of its own, which row policies can bind, where the server has it."""

from typing import Final

from storage.client import ClickHouseError, Client, scalar

VIEWS: Final = (
    "analyst_events",
    "analyst_issues",
    "analyst_issue_activity",
    "analyst_outcomes",
    "analyst_issue_day",
    "analyst_issue_release_day",
    "analyst_release_day",
    "analyst_issue_hour",
    "analyst_project_hour",
    "analyst_tag_day",
    "analyst_projects",
)
"""Everything that an analyst can name; each has a column `project_id`."""
TABLES: Final = (
    *("events", "issues", "issue_activity", "outcomes"),
    *("issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day", "projects"),
)
"""What the views read, beside the view `issue_of`; row policies stand on them."""
DEFINER: Final = "analyst_views"
"""The user that the views of our own database read as, where the server has it and we may say so."""
_UNKNOWN_USER: Final = 192


def own_views(client: Client) -> None:
    """Make `DEFINER` the definer of the views where the server has it and lets us. Raises ClickHouseError."""
    if not scalar(client, f"CHECK GRANT SET DEFINER ON {DEFINER}"):
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
            # Who may do everything may name a user who isn't there.
            if getattr(error, "code", None) == _UNKNOWN_USER:
                return
            raise
