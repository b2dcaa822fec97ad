"""The start page, and new projects."""

from aiohttp import web

from control.project_edits import create
from dashboard.auth.access import Role
from dashboard.auth.auth import IDENTITY, author_of, read_form
from dashboard.auth.authorize import visible_projects
from dashboard.dependencies import state_of
from dashboard.http.http_errors import RETRY_AFTER_SECONDS
from dashboard.http.inputs import read_project
from dashboard.http.responses import redirect
from dashboard.pages.render import page
from schemas.errors import BadChange


async def show_home(request: web.Request) -> web.Response:
    """Redirect to the first project's issues; without one, to the form for a new project or to the empty list."""
    projects = state_of(request).dependencies.projects
    if not projects.loaded:
        response = page(request, "loading.html", 503)
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    if visible := visible_projects(request):
        return redirect(f"/projects/{visible[0].id}/issues")
    return redirect("/projects/new" if request[IDENTITY].access.everywhere >= Role.ADMIN else "/projects")


async def show_project(request: web.Request) -> web.Response:
    """Redirect a project's path to its issues."""
    return redirect(f"/projects/{read_project(request.match_info['project'])}/issues")


async def show_new_project(request: web.Request) -> web.Response:
    """The form for a new project."""
    return page(request, "project_new.html", name="", error="")


async def create_project(request: web.Request) -> web.Response:
    """Create the project and show the onboarding page."""
    dependencies = state_of(request).dependencies
    name = (await read_form(request)).get("name", "")
    try:
        project = create(name, now_ms=dependencies.now_ms())
    except BadChange as error:
        message = f"The name {error.details[0].message}."
        return page(request, "project_new.html", 400, name=name, error=message)
    await dependencies.projects.write(project, author_of(request))
    return redirect(f"/projects/{project.id}/issues")
