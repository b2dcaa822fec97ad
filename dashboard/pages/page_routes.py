"""Routes of all pages."""

from aiohttp import web

from dashboard.pages import (
    bulk_change_page,
    change_forms,
    event_list_page,
    issue_list_page,
    issue_page,
    notifications_page,
    outcomes_page,
    project_page,
    projects_page,
    releases_page,
    rules_page,
    settings_page,
    sign_in_page,
    snooze_page,
    view_forms,
)


def add_pages(app: web.Application) -> None:
    """Add a route for each page."""
    app.router.add_get("/", project_page.show_home)
    app.router.add_get("/favicon.ico", sign_in_page.icon)
    app.router.add_get("/robots.txt", sign_in_page.robots)
    app.router.add_get("/sign-in", sign_in_page.show_sign_in)
    app.router.add_post("/sign-in", sign_in_page.sign_in)
    app.router.add_post("/sign-out", sign_in_page.sign_out)
    app.router.add_get("/projects", projects_page.show_projects)
    app.router.add_get("/projects/new", project_page.show_new_project)
    app.router.add_post("/projects/new", project_page.create_project)
    app.router.add_get("/projects/{project}", project_page.show_project)
    app.router.add_get("/projects/{project}/issues", issue_list_page.show_issue_list)
    app.router.add_post("/projects/{project}/issues/change", bulk_change_page.change_issues)
    app.router.add_get("/projects/{project}/issues/changes/{change}", bulk_change_page.show_progress)
    app.router.add_post("/projects/{project}/views", view_forms.post_view)
    app.router.add_post("/projects/{project}/views/{view}/rename", view_forms.post_view_name)
    app.router.add_post("/projects/{project}/views/{view}/remove", view_forms.post_view_removal)
    app.router.add_get("/projects/{project}/rules", rules_page.show_rules)
    app.router.add_post("/projects/{project}/rules", rules_page.change_rules)
    app.router.add_get("/projects/{project}/notifications", notifications_page.show_notifications)
    app.router.add_post("/projects/{project}/notifications", notifications_page.change_notifications)
    app.router.add_post("/projects/{project}/notifications/test", notifications_page.test_channel)
    app.router.add_get("/projects/{project}/releases", releases_page.show_releases)
    app.router.add_get("/projects/{project}/outcomes", outcomes_page.show_outcomes)
    app.router.add_get("/projects/{project}/settings", settings_page.show_settings)
    app.router.add_post("/projects/{project}/settings", settings_page.save_settings)
    app.router.add_post("/projects/{project}/tokens", settings_page.create_token)
    app.router.add_post("/projects/{project}/tokens/{token}/revoke", settings_page.revoke_project_token)
    app.router.add_get("/issues/{issue}", issue_page.show_issue)
    app.router.add_post("/issues/{issue}/change", change_forms.change_issue)
    app.router.add_get("/issues/{issue}/snooze", snooze_page.show_snoozes)
    app.router.add_get("/issues/{issue}/events", event_list_page.show_events)
    app.router.add_get("/issues/{issue}/events/{event}", issue_page.show_issue)
