"""The projects with their figures, searched by name."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from dashboard.auth.authorize import visible_projects
from dashboard.dependencies import State, state_of
from dashboard.http.http_errors import invalid
from dashboard.http.inputs import is_text
from dashboard.pages.render import page
from schemas.projects import Project
from storage.errors import QueryTooExpensive
from storage.read.counts.project_calls import CountProjects, ProjectCounts

PAGE_SIZE: Final = 25
MAX_ORDERED: Final = 200
"""Projects that are counted to show those with escalating and new issues first; more are listed by name."""


async def show_projects(request: web.Request) -> web.Response:
    """A page of the projects whose name or id has the searched text, those in trouble first."""
    state, name = state_of(request), request.query.get("name", "")
    number = request.query.get("page", "1")
    if not is_text(name):
        raise invalid("name", "must be text")
    if not (number.isascii() and number.isdecimal() and 1 <= len(number) <= 6 and int(number)):
        raise invalid("page", "must be a positive whole number")
    found = _found(visible_projects(request), name)
    first = (int(number) - 1) * PAGE_SIZE
    last = first + PAGE_SIZE
    is_ordered = len(found) <= MAX_ORDERED
    figures = await _figures(state, found if is_ordered else found[first:last])
    if figures is not None and is_ordered:
        found.sort(key=lambda one: _urgency(figures.get(one.number, ProjectCounts())), reverse=True)
    shown = found[first:last]
    more = f"{request.path}?{urlencode({'name': name, 'page': int(number) + 1})}"
    return page(
        request,
        "projects.html",
        active="projects",
        name=name,
        found=shown,
        total=len(found),
        first_number=first + 1,
        figures=figures,
        first=f"{request.path}?{urlencode({'name': name})}" if first else "",
        next=more if len(found) > last else "",
    )


def _found(projects: Iterable[Project], name: str) -> list[Project]:
    wanted = name.strip().casefold()
    found = [one for one in projects if wanted in one.name.casefold() or wanted == one.id]
    return sorted(found, key=lambda project: (project.name.casefold(), project.created_at))


def _urgency(counts: ProjectCounts) -> tuple[int, int]:
    return counts.escalating, counts.new


async def _figures(state: State, projects: list[Project]) -> Mapping[int, ProjectCounts] | None:
    """The figures by project; None where they would read too much."""
    try:
        return await state.dependencies.reader.read(CountProjects([one.number for one in projects]))
    except QueryTooExpensive:
        return None
