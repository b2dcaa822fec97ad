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
from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.http_errors import invalid, not_found
from dashboard.http.inputs import read_view
from dashboard.requested_project import Edit
from dashboard.time_ranges import range_parameters, read_page_range
from query.parse import parse
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


async def save_view(edit: Edit, fields: NewView, now_ms: int, request: str = "") -> SavedView:
    """Save a list under a name. `request` is the request's name under its idempotency key.

    Raises HttpError, BadChange, KeyReused, ProjectsUnavailable.
    """
    _check(fields, now_ms)
    view = view_id(request)
    return _find(await edit(lambda old: add_view(old, view, fields)), view)


async def edit_view(edit: Edit, view: str, changes: ViewChanges, now_ms: int) -> SavedView:
    """Rename a view, or change its list; errors as for `save_view`."""
    _check(changes, now_ms)
    return _find(await edit(lambda old: change_view(old, view, changes)), view)


async def delete_view(edit: Edit, view: str) -> Project:
    """The project without a view; errors as for `save_view`."""

    def change(old: Project) -> Project:
        _find(old, view)
        return remove_view(old, view)

    return await edit(change)


def _find(project: Project, view: str) -> SavedView:
    for saved in project.saved_views:
        if saved.id == view:
            return saved
    raise not_found("this view doesn't exist")


def _check(fields: ViewChanges, now_ms: int) -> None:
    try:
        parse(fields.query or "")
    except QueryError as error:
        raise invalid("query", error.message) from None
    if fields.range is not None:
        read_page_range(range_parameters(fields.range), now_ms)


@operation("GET", "/projects/{project}/views", Role.VIEWER)
async def _list(call: Call[NoInput, NoInput]) -> Views:
    """Saved views of a project."""
    return Views(list(call.project().saved_views))


@operation("POST", "/projects/{project}/views", Role.MEMBER, status=201)
async def _add(call: Call[NoInput, NewView]) -> SavedView:
    """Save a list under a name: query, sort order and range."""
    name = call.request_name(call.project().id)
    return await save_view(call.edit, call.body, call.state.dependencies.now_ms(), name)


@operation("PATCH", "/projects/{project}/views/{view}", Role.MEMBER)
async def _change(call: Call[NoInput, ViewChanges]) -> SavedView:
    """Rename a saved view or change its list."""
    view = read_view(call.path("view"))
    return await edit_view(call.edit, view, call.body, call.state.dependencies.now_ms())


@operation("DELETE", "/projects/{project}/views/{view}", Role.MEMBER)
async def _remove(call: Call[NoInput, NoInput]) -> Views:
    """Remove a saved view."""
    remaining = await delete_view(call.edit, read_view(call.path("view")))
    return Views(list(remaining.saved_views))


OPERATIONS = (_list, _add, _change, _remove)
