"""Changes of a project's saved views, shared by the API and the pages."""

from control.project_edits import ViewChanges, add_view, change_view, remove_view, view_id
from dashboard.dependencies import State
from dashboard.http.http_errors import invalid, not_found
from dashboard.projects import edit_project
from dashboard.time_ranges import range_parameters, read_page_range
from query.parse import parse
from schemas.errors import QueryError
from schemas.projects import Project, SavedView
from storage.read.issues.issue_list import SORTS


async def add(state: State, project: Project, fields: ViewChanges, request: str = "") -> SavedView:
    """Save a list under a name. `request` is the request's name under its idempotency key.

    Raises HttpError, BadChange, KeyReused, ProjectsUnavailable.
    """
    _check(state, fields)
    view = view_id(request)
    edited = await edit_project(state, project, lambda old: add_view(old, view, fields), request)
    return _find(edited, view)


async def change(
    state: State, project: Project, view: str, changes: ViewChanges, request: str = ""
) -> SavedView:
    """Rename a view, or change its list; parameters and errors as for `add`."""
    _check(state, changes)
    edited = await edit_project(state, project, lambda old: change_view(old, view, changes), request)
    return _find(edited, view)


async def remove(state: State, project: Project, view: str, request: str = "") -> Project:
    """The project without a view; parameters and errors as for `add`."""

    def edit(old: Project) -> Project:
        _find(old, view)
        return remove_view(old, view)

    return await edit_project(state, project, edit, request)


def _find(project: Project, view: str) -> SavedView:
    for saved in project.saved_views:
        if saved.id == view:
            return saved
    raise not_found("this view doesn't exist")


def _check(state: State, fields: ViewChanges) -> None:
    try:
        parse(fields.query or "")
    except QueryError as error:
        raise invalid("query", error.message) from None
    if fields.sort is not None and fields.sort not in SORTS:
        raise invalid("sort", f"one of {', '.join(SORTS)}")
    if fields.range is not None:
        read_page_range(range_parameters(fields.range), state.dependencies.now_ms())
