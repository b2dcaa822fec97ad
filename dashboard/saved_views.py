"""Saved views of a project: checked and kept in its record. The API and the pages make the same changes."""

from collections.abc import Callable

from dashboard.parts import State
from dashboard.refusals import invalid, not_found
from schemas.projects import Project, SavedView
from storage.project_edits import add_view, change_view, once, remove_view, view_id
from storage.query.errors import QueryError
from storage.query.parse import parse


async def add(state: State, project: Project, name: str, query: str, request: str = "") -> SavedView:
    """Save a query under a name. Raises Refused, BadChange, KeyReused, ProjectsUnavailable.

    Here and below `request` names the request where it is made once under its key.
    """
    _check(query)
    view = view_id(request)
    return _found(await _edit(state, project, request, lambda old: add_view(old, view, name, query)), view)


async def change(
    state: State,
    project: Project,
    view: str,
    name: str | None = None,
    query: str | None = None,
    request: str = "",
) -> SavedView:
    """Rename a view, or let it ask something else; raises as `add` does."""
    if query is not None:
        _check(query)
    return _found(await _edit(state, project, request, lambda old: change_view(old, view, name, query)), view)


async def remove(state: State, project: Project, view: str, request: str = "") -> Project:
    """The project without a view; raises as `add` does."""

    def edit(old: Project) -> Project:
        _found(old, view)
        return remove_view(old, view)

    return await _edit(state, project, request, edit)


async def _edit(
    state: State, project: Project, request: str, change: Callable[[Project], Project]
) -> Project:
    edited = await state.parts.projects.edit(project.number, lambda old: once(old, request, change))
    if edited is None:
        raise not_found("there is no such project")
    return edited


def _found(project: Project, view: str) -> SavedView:
    for known in project.saved_views:
        if known.id == view:
            return known
    raise not_found("there is no such view")


def _check(query: str) -> None:
    try:
        parse(query)
    except QueryError as error:
        raise invalid("query", error.message) from None
