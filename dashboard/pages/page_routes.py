"""Routes of all pages, and the role that each needs."""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from dashboard.auth.access import Role
from dashboard.auth.authorize import authorized
from dashboard.pages import (
    bulk_change_page,
    change_forms,
    change_log_page,
    event_list_page,
    issue_list_page,
    issue_page,
    keys_page,
    notifications_page,
    outcomes_page,
    project_page,
    projects_page,
    releases_page,
    rules_page,
    settings_page,
    sign_in_page,
    snooze_page,
    source_maps_page,
    view_forms,
)


class Page(Struct, frozen=True):
    """A page or a form: the role that it needs in the path's project, or everywhere where the path has none."""

    method: str
    path: str
    handler: Handler
    needs: Role


PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/", project_page.show_home, Role.NONE),
    Page("POST", "/sign-out", sign_in_page.sign_out, Role.NONE),
    Page("GET", "/projects", projects_page.show_projects, Role.NONE),
    Page("GET", "/projects/new", project_page.show_new_project, Role.ADMIN),
    Page("POST", "/projects/new", project_page.create_project, Role.ADMIN),
    Page("GET", "/projects/{project}", project_page.show_project, Role.VIEWER),
    Page("GET", "/projects/{project}/issues", issue_list_page.show_issue_list, Role.VIEWER),
    Page("POST", "/projects/{project}/issues/change", bulk_change_page.change_issues, Role.MEMBER),
    Page("GET", "/projects/{project}/issues/changes/{change}", bulk_change_page.show_progress, Role.VIEWER),
    Page("POST", "/projects/{project}/views", view_forms.post_view, Role.MEMBER),
    Page("POST", "/projects/{project}/views/{view}/rename", view_forms.post_view_name, Role.MEMBER),
    Page("POST", "/projects/{project}/views/{view}/remove", view_forms.post_view_removal, Role.MEMBER),
    Page("GET", "/projects/{project}/rules", rules_page.show_rules, Role.VIEWER),
    Page("POST", "/projects/{project}/rules", rules_page.change_rules, Role.ADMIN),
    Page("GET", "/projects/{project}/notifications", notifications_page.show_notifications, Role.VIEWER),
    Page("POST", "/projects/{project}/notifications", notifications_page.change_notifications, Role.ADMIN),
    Page("POST", "/projects/{project}/notifications/test", notifications_page.test_channel, Role.ADMIN),
    Page("GET", "/projects/{project}/releases", releases_page.show_releases, Role.VIEWER),
    Page("GET", "/projects/{project}/outcomes", outcomes_page.show_outcomes, Role.VIEWER),
    Page("GET", "/projects/{project}/source-maps", source_maps_page.show_source_maps, Role.VIEWER),
    Page("POST", "/projects/{project}/source-maps", source_maps_page.delete_source_maps, Role.ADMIN),
    Page("GET", "/projects/{project}/settings", settings_page.show_settings, Role.VIEWER),
    Page("POST", "/projects/{project}/settings", settings_page.save_settings, Role.ADMIN),
    Page("POST", "/projects/{project}/tokens", settings_page.create_token, Role.ADMIN),
    Page("POST", "/projects/{project}/tokens/{token}/revoke", settings_page.revoke_project_token, Role.ADMIN),
    Page("GET", "/projects/{project}/keys", keys_page.show_keys, Role.ADMIN),
    Page("POST", "/projects/{project}/keys", keys_page.create_key, Role.ADMIN),
    Page("POST", "/projects/{project}/keys/{apiKey}/revoke", keys_page.revoke, Role.ADMIN),
    Page("GET", "/keys", keys_page.show_keys, Role.ADMIN),
    Page("POST", "/keys", keys_page.create_key, Role.ADMIN),
    Page("POST", "/keys/{apiKey}/revoke", keys_page.revoke, Role.ADMIN),
    Page("GET", "/projects/{project}/changes", change_log_page.show_changes, Role.ADMIN),
    Page("GET", "/changes", change_log_page.show_changes, Role.NONE),
    Page("GET", "/issues/{issue}", issue_page.show_issue, Role.VIEWER),
    Page("POST", "/issues/{issue}/change", change_forms.change_issue, Role.MEMBER),
    Page("POST", "/issues/{issue}/discard", change_forms.discard_issue, Role.ADMIN),
    Page("GET", "/issues/{issue}/snooze", snooze_page.show_snoozes, Role.VIEWER),
    Page("GET", "/issues/{issue}/events", event_list_page.show_events, Role.VIEWER),
    Page("GET", "/issues/{issue}/events/{event}", issue_page.show_issue, Role.VIEWER),
)


def add_pages(app: web.Application) -> None:
    """Add a route for each page, and for those that are open to everyone."""
    app.router.add_get("/favicon.ico", sign_in_page.icon)
    app.router.add_get("/robots.txt", sign_in_page.robots)
    app.router.add_get("/sign-in", sign_in_page.show_sign_in)
    app.router.add_post("/sign-in", sign_in_page.sign_in)
    for page in PAGES:
        handler = authorized(page.handler, page.needs)
        if page.method == "GET":
            app.router.add_get(page.path, handler)
        else:
            app.router.add_post(page.path, handler)
