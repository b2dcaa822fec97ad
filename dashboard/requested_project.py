"""Lookup and edits of the project in a path."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from control.project_edits import apply_once
from dashboard.auth.auth import author_of
from dashboard.dependencies import State, state_of
from dashboard.http.http_errors import HttpError, not_found, unavailable
from dashboard.http.inputs import read_project
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


Edit = Callable[[Callable[[Project], Project]], Awaitable[Project]]
"""Makes a change of the project in a request's path."""


async def edit_project(request: web.Request, change: Callable[[Project], Project], name: str = "") -> Project:
    """The path's project after a change; a non-empty `name`, that of an idempotent request, applies it once.

    Raises HttpError, ProjectsUnavailable, KeyReused, and the errors of `change`.
    """
    edited = await state_of(request).dependencies.projects.edit(
        project_of(request).number, lambda old: apply_once(old, name, change), author_of(request)
    )
    if edited is None:
        raise no_project()
    return edited
