"""The way in, and a new project."""

from aiohttp import web

from control.project_edits import create
from dashboard.auth.auth import form
from dashboard.dependencies import state_of
from dashboard.http.errors import RETRY_AFTER_SECONDS
from dashboard.http.inputs import read_project
from dashboard.http.wire import redirect
from dashboard.pages.render import page
from schemas.errors import BadChange


async def home(request: web.Request) -> web.Response:
    """The first project's issues; the form for a new one where there is none."""
    projects = state_of(request).parts.projects
    if not projects.loaded:
        response = page(request, "loading.html", 503)
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    known = projects.all()
    return redirect(f"/projects/{known[0].id}/issues" if known else "/projects/new")


async def show(request: web.Request) -> web.Response:
    """A project's address leads to its issues."""
    return redirect(f"/projects/{read_project(request.match_info['project'])}/issues")


async def new(request: web.Request) -> web.Response:
    """The form for a new project."""
    return page(request, "project_new.html", name="", wrong="")


async def create_project(request: web.Request) -> web.Response:
    """Create it, and go to where its first event is awaited."""
    parts = state_of(request).parts
    name = (await form(request)).get("name", "")
    try:
        project = create(name, now_ms=parts.now_ms())
    except BadChange as error:
        return page(
            request, "project_new.html", 400, name=name, wrong=f"The name {error.details[0].message}."
        )
    await parts.projects.write(project)
    return redirect(f"/projects/{project.id}/issues")
