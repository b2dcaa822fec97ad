"""Routes of all pages."""

from aiohttp import web

from dashboard.pages import (
    bulk,
    changes,
    event_list,
    issue,
    issue_list,
    notifications,
    outcomes,
    project,
    projects,
    releases,
    rules,
    settings,
    signin,
    snooze,
    views,
)


def add_pages(app: web.Application) -> None:
    """Add a route for each page."""
    app.router.add_get("/", project.home)
    app.router.add_get("/favicon.ico", signin.icon)
    app.router.add_get("/robots.txt", signin.robots)
    app.router.add_get("/sign-in", signin.show)
    app.router.add_post("/sign-in", signin.sign_in)
    app.router.add_post("/sign-out", signin.sign_out)
    app.router.add_get("/projects", projects.show)
    app.router.add_get("/projects/new", project.new)
    app.router.add_post("/projects/new", project.create_project)
    app.router.add_get("/projects/{project}", project.show)
    app.router.add_get("/projects/{project}/issues", issue_list.show)
    app.router.add_post("/projects/{project}/issues/change", bulk.change)
    app.router.add_get("/projects/{project}/issues/changes/{change}", bulk.progress)
    app.router.add_post("/projects/{project}/views", views.save)
    app.router.add_post("/projects/{project}/views/{view}/rename", views.rename)
    app.router.add_post("/projects/{project}/views/{view}/remove", views.delete)
    app.router.add_get("/projects/{project}/rules", rules.show)
    app.router.add_post("/projects/{project}/rules", rules.change)
    app.router.add_get("/projects/{project}/notifications", notifications.show)
    app.router.add_post("/projects/{project}/notifications", notifications.change)
    app.router.add_get("/projects/{project}/releases", releases.show)
    app.router.add_get("/projects/{project}/outcomes", outcomes.show)
    app.router.add_get("/projects/{project}/settings", settings.show)
    app.router.add_post("/projects/{project}/settings", settings.save)
    app.router.add_post("/projects/{project}/tokens", settings.create_token)
    app.router.add_post("/projects/{project}/tokens/{token}/revoke", settings.revoke)
    app.router.add_get("/issues/{issue}", issue.show)
    app.router.add_post("/issues/{issue}/change", changes.change)
    app.router.add_get("/issues/{issue}/snooze", snooze.show)
    app.router.add_get("/issues/{issue}/events", event_list.show)
    app.router.add_get("/issues/{issue}/events/{event}", issue.show)
