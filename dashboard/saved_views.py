"""Saved views of a project: checked and kept in its record. The API and the pages make the same changes."""

from collections.abc import Callable

from control.project_edits import ViewChanges, add_view, apply_once, change_view, remove_view, view_id
from dashboard.dependencies import State
from dashboard.http.errors import invalid, not_found
from dashboard.pages.spans import read_span, span_fields
from query.parse import parse
from schemas.errors import QueryError
from schemas.projects import Project, SavedView
from storage.reader.issue_list import SORTS


async def add(state: State, project: Project, given: ViewChanges, request: str = "") -> SavedView:
    """Save a list under a name. Raises Refused, BadChange, KeyReused, ProjectsUnavailable.

    Here and below `request` names the request where it is made once under its key.
    """
    _check(state, given)
    view = view_id(request)
    return _found(await _edit(state, project, request, lambda old: add_view(old, view, given)), view)


async def change(
    state: State, project: Project, view: str, changes: ViewChanges, request: str = ""
) -> SavedView:
    """Give a view another name, or let it ask for something else; raises as `add` does."""
    _check(state, changes)
    edited = await _edit(state, project, request, lambda old: change_view(old, view, changes))
    return _found(edited, view)


async def remove(state: State, project: Project, view: str, request: str = "") -> Project:
    """The project without a view; raises as `add` does."""

    def edit(old: Project) -> Project:
        _found(old, view)
        return remove_view(old, view)

    return await _edit(state, project, request, edit)


async def _edit(
    state: State, project: Project, request: str, change: Callable[[Project], Project]
) -> Project:
    edited = await state.parts.projects.edit(project.number, lambda old: apply_once(old, request, change))
    if edited is None:
        raise not_found("there is no such project")
    return edited


def _found(project: Project, view: str) -> SavedView:
    for known in project.saved_views:
        if known.id == view:
            return known
    raise not_found("there is no such view")


def _check(state: State, given: ViewChanges) -> None:
    try:
        parse(given.query or "")
    except QueryError as error:
        raise invalid("query", error.message) from None
    if given.sort is not None and given.sort not in SORTS:
        raise invalid("sort", f"one of {', '.join(SORTS)}")
    if given.range is not None:
        read_span(span_fields(given.range), state.parts.now_ms())
