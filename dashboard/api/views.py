"""Saved views: named issue lists of a project."""

from typing import Annotated

from msgspec import Meta, Struct

from control import project_edits
from control.project_edits import MAX_VIEW_NAME, MAX_VIEW_QUERY
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.inputs import read_view
from dashboard.saved_views import add, change, remove
from schemas.projects import SavedView
from schemas.read_api import Sort

ViewName = Annotated[str, Meta(min_length=1, max_length=MAX_VIEW_NAME)]
ViewRange = Annotated[
    str,
    Meta(
        max_length=100,
        description="a duration such as `7d`, or `START/END` with one of them optional",
    ),
]
ViewQuery = Annotated[str, Meta(max_length=MAX_VIEW_QUERY, description="query language; must parse")]


class Views(Struct, frozen=True):
    """A project's saved views, in order of creation."""

    views: list[SavedView]


class NewView(Struct, frozen=True, forbid_unknown_fields=True):
    """A new saved view."""

    name: ViewName
    query: ViewQuery
    sort: Sort = "lastSeen"
    range: ViewRange = "14d"


class ViewUpdate(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a view; omitted fields stay unchanged."""

    name: ViewName | None = None
    query: ViewQuery | None = None
    sort: Sort | None = None
    range: ViewRange | None = None


async def _list(call: Call[NoInput, NoInput]) -> Views:
    return Views(list(call.project().saved_views))


async def _add(call: Call[NoInput, NewView]) -> SavedView:
    project = call.project()
    return await add(call.state, project, _fields(call.body), call.request_name(project.id))


async def _change(call: Call[NoInput, ViewUpdate]) -> SavedView:
    project, view, body = call.project(), read_view(call.path("view")), call.body
    return await change(call.state, project, view, _fields(body), call.request_name(project.id))


def _fields(body: NewView | ViewUpdate) -> project_edits.ViewChanges:
    return project_edits.ViewChanges(body.name, body.query, body.sort, body.range)


async def _remove(call: Call[NoInput, NoInput]) -> Views:
    project, view = call.project(), read_view(call.path("view"))
    remaining = await remove(call.state, project, view, call.request_name(project.id))
    return Views(list(remaining.saved_views))


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/views",
        summary="Saved views of a project",
        handler=_list,
        answer=Views,
    ),
    Operation(
        method="POST",
        path="/projects/{project}/views",
        summary="Save a list under a name: query, sort order and range",
        handler=_add,
        body=NewView,
        answer=SavedView,
        status=201,
    ),
    Operation(
        method="PATCH",
        path="/projects/{project}/views/{view}",
        summary="Rename a saved view or change its list",
        handler=_change,
        body=ViewUpdate,
        answer=SavedView,
    ),
    Operation(
        method="DELETE",
        path="/projects/{project}/views/{view}",
        summary="Remove a saved view",
        handler=_remove,
        answer=Views,
    ),
)
