"""Lookup and edits of the project in a path."""

from collections.abc import Callable

from aiohttp import web

from control.project_edits import apply_once
from dashboard.dependencies import State, state_of
from dashboard.http.http_errors import HttpError, not_found, unavailable
from dashboard.http.inputs import read_project
from schemas.change_records import Author
from schemas.projects import Project


def no_project() -> HttpError:
    """There is no such project, or none that exists for the person."""
    return not_found("this project doesn't exist")


def find_project(state: State, text: str) -> Project:
    """The project with this id. Raises HttpError."""
    projects = state.dependencies.projects
    project = projects.get(read_project(text))
    if project is not None:
        return project
    if not projects.loaded:
        raise unavailable("projects are not loaded yet")
    raise no_project()


def project_of(request: web.Request) -> Project:
    """The project in the request's path, or without one the record of all projects. Raises HttpError."""
    projects = state_of(request).dependencies.projects
    if "project" not in request.match_info:
        if not projects.loaded:
            raise unavailable("projects are not loaded yet")
        return projects.registry.all_projects
    return find_project(state_of(request), request.match_info["project"])


async def edit_project(
    state: State,
    project: Project,
    change: Callable[[Project], Project],
    author: Author,
    request: str = "",
) -> Project:
    """The project after a change; a non-empty `request` (the name of an idempotent request) applies it once.

    Raises HttpError, ProjectsUnavailable, KeyReused, and the errors of `change`.
    """
    edited = await state.dependencies.projects.edit(
        project.number, lambda old: apply_once(old, request, change), author
    )
    if edited is None:
        raise no_project()
    return edited
