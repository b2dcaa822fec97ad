"""From a template to an answer: the template environment, and what every page is given."""

import hashlib
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from aiohttp import web

from dashboard.auth.auth import IDENTITY
from dashboard.dependencies import state_of
from dashboard.http.errors import HttpError
from dashboard.view import charts, text, times

TITLES = {
    400: "This can't be shown",
    401: "Sign in first",
    403: "Not allowed",
    404: "Nothing here",
    405: "Not possible here",
    413: "Too large",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Not available at the moment",
}


def environment() -> jinja2.Environment:
    """Templates with autoescape; a name that isn't given is an error, not an empty place."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "inline": text.inline,
        "flat": text.flat,
        "block": text.block,
        "count": text.count,
        "ago": times.ago,
        "age": times.age,
    }
    made.filters |= {"exact": times.exact, "distance": times.distance, "plural": text.plural}
    made.globals |= {
        "static": static,
        "sparkline": charts.sparkline,
        "share": charts.share,
        "percent": charts.percent,
    }
    return made


@cache
def static(name: str) -> str:
    """Address of a file under `static`, which changes with its content so that caches may keep it."""
    content = (resources.files("dashboard") / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A page for the one who asks."""
    state = state_of(request)
    identity = request.get(IDENTITY)
    given = {
        "csrf": identity.session.csrf if identity is not None and identity.session is not None else "",
        "signed_in": identity is not None,
        "projects": state.parts.projects.all() if identity is not None else [],
        "project": None,
        "active": "",
        "now_ms": state.parts.now_ms(),
    }
    body = state.templates.get_template(template).render(given | values)
    return web.Response(text=body, status=status, content_type="text/html")


def error_page(request: web.Request, refused: HttpError) -> web.Response:
    """An error as a page: what happened in a sentence, and a way on. What can't be read may follow a change that was made."""
    status = refused.error.status
    is_passing = status == 503 and request.method == "GET"
    response = page(
        request,
        "error.html",
        status,
        title=TITLES.get(status, TITLES[400]),
        sentence=refused.sentence,
        details=refused.details or [],
        was_changed=is_passing and "done" in request.query,
        again=request.path_qs if is_passing else "",
    )
    response.headers.update(refused.headers)
    return response
