"""Rendering of templates: the environment, and the variables of every page."""

import hashlib
from collections import Counter
from functools import cache
from importlib import resources
from typing import Any, Final

import jinja2
from aiohttp import web

from dashboard.auth.access import Access, Role
from dashboard.auth.auth import IDENTITY
from dashboard.auth.authorize import visible_projects
from dashboard.auth.session import masked_csrf
from dashboard.dependencies import lag_of, state_of
from dashboard.http.http_errors import HttpError
from dashboard.view import change_text, charts, filters, text, time_texts
from dashboard.view.source_links import release_link
from schemas.projects import Project
from storage.read.execute import is_partial

TITLES = {
    400: "Invalid request",
    401: "Sign in required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    413: "Too large",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Temporarily unavailable",
}


MENU: Final = 20
"""Projects in the menu of every page; the page of all projects has the others."""
FACT_FIELDS = {
    "Release": "release",
    "Environment": "environment",
    "Platform": "platform",
    "SDK": "sdk",
    "Id": "user",
    "Model": "model",
    "Locale": "locale",
}
"""Labels of an event's facts that a query can ask for, and the fields of the language."""


@cache
def environment() -> jinja2.Environment:
    """Templates with autoescape; an undefined variable is an error."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "inline": text.inline,
        "flat": text.flat,
        "block": text.block,
        "code_spans": text.code_spans,
        "count": text.count,
        "title": text.title,
        "where": text.where,
        "plural": text.plural,
        "users": text.users,
        "ago": time_texts.ago,
        "exact": time_texts.exact,
        "at": time_texts.at,
        "is_new": time_texts.is_new,
        "is_escalating": time_texts.is_escalating,
        "distance": time_texts.distance,
        "words": change_text.words,
        "change_values": change_text.values,
    }
    templates.globals |= {
        "static": static,
        "sparkline": charts.sparkline,
        "share": charts.share,
        "percent": charts.percent,
        "field_query": filters.field_query,
        "release_link": release_link,
        "fields": FACT_FIELDS,
        "exact_users": text.EXACT_USERS,
    }
    return templates


@cache
def static(name: str) -> str:
    """URL of a static file with a hash of its content, so that caches may keep it."""
    content = (resources.files("dashboard") / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A page as the authenticated user sees it: without what the role doesn't allow."""
    state, identity, project = state_of(request), request.get(IDENTITY), values.get("project")
    projects = visible_projects(request)
    access = identity.access if identity is not None else Access()
    role = access.everywhere if project is None else access.role_in(project)
    context = {
        "csrf": masked_csrf(identity.session)
        if identity is not None and identity.session is not None
        else "",
        "signed_in": identity is not None,
        "me": identity.given_name if identity is not None else "",
        "menu": projects[:MENU],
        "namesakes": Counter(project.name for project in projects),
        "project": None,
        "active": "",
        "now_ms": state.dependencies.now_ms(),
        "is_admin": role >= Role.ADMIN,
        "is_member": role >= Role.MEMBER,
        "can_change": role >= Role.MEMBER and state.dependencies.changes is not None,
        "can_create": access.everywhere >= Role.ADMIN,
        "is_partial": is_partial(),
        "behind": lag_of(state).behind,
    }
    body = state.templates.get_template(template).render(context | values)
    response = web.Response(text=body, status=status, content_type="text/html")
    response.enable_compression()
    return response


def _named_project(request: web.Request) -> Project | None:
    """The project of the path, if it exists for the person: its menu leads on from an error."""
    _, first, named, *_ = (*request.path.split("/"), "", "")
    if first != "projects":
        return None
    return next((project for project in visible_projects(request) if project.id == named), None)


def error_page(request: web.Request, error: HttpError) -> web.Response:
    """An error page with links to continue. After a change, reading its result may fail."""
    status = error.error.status
    can_retry = status == 503 and request.method == "GET"
    response = page(
        request,
        "error.html",
        status,
        project=_named_project(request),
        title=TITLES.get(status, TITLES[400]),
        sentence=error.sentence,
        details=error.details or [],
        was_changed=can_retry and "done" in request.query,
        retry=request.path_qs if can_retry else "",
        # A message is sent from Kafka, and its link may be followed before ClickHouse has the issue.
        may_come=status == 404 and request.method == "GET" and request.path.startswith("/issues/"),
    )
    response.headers.update(error.headers)
    return response
