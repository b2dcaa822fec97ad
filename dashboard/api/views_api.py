"""Saved views: named issue lists of a project. Its pages make the same changes."""

from msgspec import Struct

from control.project_edits import (
    ViewChanges,
    ViewName,
    ViewQuery,
    ViewRange,
    add_view,
    change_view,
    remove_view,
    view_id,
)
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.auth.access import Role
from dashboard.dependencies import State
from dashboard.http.http_errors import invalid, not_found
from dashboard.http.inputs import read_view
from dashboard.requested_project import edit_project
from dashboard.time_ranges import range_parameters, read_page_range
from query.parse import parse
from schemas.change_records import Author
from schemas.errors import QueryError
from schemas.projects import Project, SavedView
from schemas.read_api import Sort


class Views(Struct, frozen=True):
    """A project's saved views, in order of creation."""

    views: list[SavedView]


class NewView(ViewChanges, frozen=True, kw_only=True):
    """A new saved view."""

    name: ViewName
    query: ViewQuery
    sort: Sort = "lastSeen"
    range: ViewRange = "14d"


async def save_view(
    state: State, project: Project, fields: NewView, author: Author, request: str = ""
) -> SavedView:
    """Save a list under a name. `request` is the request's name under its idempotency key.

    Raises HttpError, BadChange, KeyReused, ProjectsUnavailable.
    """
    _check(state, fields)
    view = view_id(request)
    edited = await edit_project(state, project, lambda old: add_view(old, view, fields), author, request)
    return _find(edited, view)


async def edit_view(
    state: State, project: Project, view: str, changes: ViewChanges, author: Author, request: str = ""
) -> SavedView:
    """Rename a view, or change its list; parameters and errors as for `save_view`."""
    _check(state, changes)
    edited = await edit_project(state, project, lambda old: change_view(old, view, changes), author, request)
    return _find(edited, view)


async def delete_view(
    state: State, project: Project, view: str, author: Author, request: str = ""
) -> Project:
    """The project without a view; parameters and errors as for `save_view`."""

    def edit(old: Project) -> Project:
        _find(old, view)
        return remove_view(old, view)

    return await edit_project(state, project, edit, author, request)


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
    if fields.range is not None:
        read_page_range(range_parameters(fields.range), state.dependencies.now_ms())


async def _list(call: Call[NoInput, NoInput]) -> Views:
    return Views(list(call.project().saved_views))


async def _add(call: Call[NoInput, NewView]) -> SavedView:
    project = call.project()
    return await save_view(call.state, project, call.body, call.author, call.request_name(project.id))


async def _change(call: Call[NoInput, ViewChanges]) -> SavedView:
    project, view = call.project(), read_view(call.path("view"))
    name = call.request_name(project.id)
    return await edit_view(call.state, project, view, call.body, call.author, name)


async def _remove(call: Call[NoInput, NoInput]) -> Views:
    project, view = call.project(), read_view(call.path("view"))
    remaining = await delete_view(call.state, project, view, call.author, call.request_name(project.id))
    return Views(list(remaining.saved_views))


OPERATIONS = (
    Operation("GET", "/projects/{project}/views", "Saved views of a project", _list, Role.VIEWER),
    Operation(
        "POST",
        "/projects/{project}/views",
        "Save a list under a name: query, sort order and range",
        _add,
        Role.MEMBER,
        status=201,
    ),
    Operation(
        "PATCH",
        "/projects/{project}/views/{view}",
        "Rename a saved view or change its list",
        _change,
        Role.MEMBER,
    ),
    Operation("DELETE", "/projects/{project}/views/{view}", "Remove a saved view", _remove, Role.MEMBER),
)
