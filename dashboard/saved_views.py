"""Saved views of a project: checked and kept in its record. The API and the pages make the same changes."""

from dashboard.parts import State
from dashboard.refusals import invalid, not_found
from schemas.projects import Project, SavedView
from storage.project_edits import add_view, change_view, remove_view
from storage.query.errors import QueryError
from storage.query.parse import parse


async def add(state: State, project: Project, name: str, query: str) -> SavedView:
    """Save a query under a name. Raises Refused, BadChange, ProjectsUnavailable."""
    _check(query)
    made: list[SavedView] = []

    def edit(old: Project) -> Project:
        changed, view = add_view(old, name, query)
        made.append(view)
        return changed

    _there(await state.parts.projects.edit(project.number, edit))
    return made[-1]


async def change(
    state: State, project: Project, view: str, name: str | None = None, query: str | None = None
) -> SavedView:
    """Rename a view, or let it ask something else; raises as `add` does."""
    if query is not None:
        _check(query)
    made: list[SavedView | None] = []

    def edit(old: Project) -> Project:
        changed, found = change_view(old, view, name, query)
        made.append(found)
        return changed

    _there(await state.parts.projects.edit(project.number, edit))
    found = made[-1]
    if found is None:
        raise not_found("there is no such view")
    return found


async def remove(state: State, project: Project, view: str) -> Project:
    """The project without a view; raises as `add` does."""
    if all(known.id != view for known in project.saved_views):
        raise not_found("there is no such view")
    return _there(await state.parts.projects.edit(project.number, lambda old: remove_view(old, view)))


def _there(project: Project | None) -> Project:
    if project is None:
        raise not_found("there is no such project")
    return project


def _check(query: str) -> None:
    try:
        parse(query)
    except QueryError as error:
        raise invalid("query", error.message) from None
