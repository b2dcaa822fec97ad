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
    app.router.add_get("/", project.show_home)
    app.router.add_get("/favicon.ico", signin.icon)
    app.router.add_get("/robots.txt", signin.robots)
    app.router.add_get("/sign-in", signin.show_sign_in)
    app.router.add_post("/sign-in", signin.sign_in)
    app.router.add_post("/sign-out", signin.sign_out)
    app.router.add_get("/projects", projects.show_projects)
    app.router.add_get("/projects/new", project.show_new_project)
    app.router.add_post("/projects/new", project.create_project)
    app.router.add_get("/projects/{project}", project.show_project)
    app.router.add_get("/projects/{project}/issues", issue_list.show_issue_list)
    app.router.add_post("/projects/{project}/issues/change", bulk.change_issues)
    app.router.add_get("/projects/{project}/issues/changes/{change}", bulk.show_progress)
    app.router.add_post("/projects/{project}/views", views.post_view)
    app.router.add_post("/projects/{project}/views/{view}/rename", views.post_view_name)
    app.router.add_post("/projects/{project}/views/{view}/remove", views.post_view_removal)
    app.router.add_get("/projects/{project}/rules", rules.show_rules)
    app.router.add_post("/projects/{project}/rules", rules.change_rules)
    app.router.add_get("/projects/{project}/notifications", notifications.show_notifications)
    app.router.add_post("/projects/{project}/notifications", notifications.change_notifications)
    app.router.add_get("/projects/{project}/releases", releases.show_releases)
    app.router.add_get("/projects/{project}/outcomes", outcomes.show_outcomes)
    app.router.add_get("/projects/{project}/settings", settings.show_settings)
    app.router.add_post("/projects/{project}/settings", settings.save_settings)
    app.router.add_post("/projects/{project}/tokens", settings.create_token)
    app.router.add_post("/projects/{project}/tokens/{token}/revoke", settings.revoke_project_token)
    app.router.add_get("/issues/{issue}", issue.show_issue)
    app.router.add_post("/issues/{issue}/change", changes.change_issue)
    app.router.add_get("/issues/{issue}/snooze", snooze.show_snoozes)
    app.router.add_get("/issues/{issue}/events", event_list.show_events)
    app.router.add_get("/issues/{issue}/events/{event}", issue.show_issue)
