"""Commands for the first event, ready to copy."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from dashboard.dependencies import dashboard_address, state_of
from dashboard.javascript_library import import_map, javascript_modules, javascript_package
from dashboard.library_wheel import library_wheel
from schemas.addresses import host_port
from schemas.ids import uuid7
from schemas.projects import Project
from schemas.times import iso

DEFAULT_INGEST_PORT = 8080
_INIT: Final = 'svc.init(release="hello@1.0.0+1", environment="dev", capture={"logs": "events"})'
PROGRAMS: Final[Mapping[str, str]] = {
    "Python": f"""\
# hello.py; run it with: python hello.py
import svc

{_INIT}
raise RuntimeError("my first event")
""",
    "FastAPI, Starlette": f"""\
# hello.py; run it with: uvicorn hello:app, then open http://127.0.0.1:8000/fail
from fastapi import FastAPI

import svc.starlette

{_INIT}
app = FastAPI()
svc.starlette.watch(app)


@app.get("/fail")
def fail():
    raise RuntimeError("my first event")
""",
    "Flask": f"""\
# hello.py; run it with: flask --app hello run, then open http://127.0.0.1:5000/fail
from flask import Flask

import svc.flask

{_INIT}
app = Flask(__name__)
svc.flask.watch(app)


@app.get("/fail")
def fail():
    raise RuntimeError("my first event")
""",
    "Django": f"""\
# settings.py; an error that becomes a 500 is reported
import svc

{_INIT}
MIDDLEWARE = [
    "svc.django.middleware",  # the first one
    # the others as they are
]
""",
    "Celery": f"""\
# next to the Celery application; each task that fails is reported
import svc.celery

{_INIT}
svc.celery.watch()
""",
}
"""The shortest program for each framework that reports an error, as `docs/develop/report-errors.md` explains them."""


def first_steps(request: web.Request, project: Project) -> dict[str, Any]:
    """The ingest URL, a valid token, commands that use them, and programs by language or framework."""
    url = ingest_url(request)
    token = next((token.token for token in project.tokens if token.revoked_at is None), "")
    return {
        "ingest_url": url,
        "token": token,
        "curl": _curl(request, url, token),
        "install": _install(request, url, token),
        "wheel": library_wheel(),
        "programs": PROGRAMS,
        "javascript": _javascript(request, url, token),
    }


def ingest_url(request: web.Request) -> str:
    """The ingest URL: as configured, else this host with the default port."""
    configured = state_of(request).settings.ingest_url.rstrip("/")
    host = urlsplit(f"//{request.host}").hostname or "127.0.0.1"
    return configured or f"http://{host_port(host, DEFAULT_INGEST_PORT)}"


def _curl(request: web.Request, url: str, token: str) -> str:
    now_ms = state_of(request).dependencies.now_ms()
    event = {
        "id": str(uuid7(now_ms)),
        "timestamp": iso(now_ms),
        "kind": "error",
        "platform": "javascript",
        "release": "hello@1.0.0+1",
        "environment": "dev",
        "device": {"os": "other", "osVersion": "1"},
        "app": {"version": "1.0.0"},
        "error": {
            "type": "HelloError",
            "message": "my first event",
            "stack": [{"function": "main", "file": "src/hello.js", "line": 1, "inApp": True}],
        },
    }
    headers = (f"Authorization: Bearer {token}", "Svc-Sdk: curl/1.0", "Content-Type: application/json")
    arguments = [
        f"curl {shlex.quote(url + '/v1/events')}",
        *(f"-H {shlex.quote(header)}" for header in headers),
    ]
    return " \\\n  ".join([*arguments, f"-d {shlex.quote(json.dumps(event, separators=(',', ':')))}"])


def _install(request: web.Request, url: str, token: str) -> str:
    return (
        "python3 -m venv .venv && . .venv/bin/activate\n"
        f"pip install {shlex.quote(dashboard_address(request) + library_wheel().path)}\n"
        f"export SVC_TOKEN={shlex.quote(token)}\nexport SVC_INGEST_URL={shlex.quote(url)}"
    )


def _javascript(request: web.Request, url: str, token: str) -> dict[str, str]:
    """The lines for a page and for a bundler, by the id of their block."""
    address = dashboard_address(request)
    (module,) = [module for module in javascript_modules() if module.name.endswith("/svc.js")]
    options = {"token": token, "release": "hello@1.0.0+1", "environment": "dev", "ingestUrl": url}
    given = "".join(f"  {name}: {json.dumps(value)},\n" for name, value in options.items())
    start = f'svc.init({{\n{given}}});\nthrow new Error("my first event");\n'
    return {
        "page": f'<script type="module">\nimport * as svc from "{address}{module.path}";\n{start}</script>',
        "hashes": import_map(address),
        "npm": f"npm install {shlex.quote(address + javascript_package().path)}",
        "bundled": f'import * as svc from "svc-js";\n{start}',
    }
