"""Commands for the first event, ready to copy."""

import json
import shlex
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from dashboard.dependencies import state_of
from schemas.ids import uuid7
from schemas.projects import Project
from schemas.times import iso

DEFAULT_INGEST_PORT = 8080


def first_steps(request: web.Request, project: Project) -> dict[str, Any]:
    """The ingest URL, a valid token, and commands that use them."""
    url = ingest_url(request)
    token = next((token.token for token in project.tokens if token.revoked_at is None), "")
    return {
        "ingest_url": url,
        "token": token,
        "curl": _curl(request, url, token),
        "python": _python(url, token),
    }


def ingest_url(request: web.Request) -> str:
    """The ingest URL: as configured, else this host with the default port."""
    configured = state_of(request).settings.ingest_url.rstrip("/")
    host = urlsplit(f"//{request.host}").hostname or "127.0.0.1"
    return configured or f"http://{f'[{host}]' if ':' in host else host}:{DEFAULT_INGEST_PORT}"


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


def _python(url: str, token: str) -> str:
    return (
        "import svc\n\n"
        f'svc.init(token="{token}", ingest_url="{url}", release="hello@1.0.0+1")\n'
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    svc.capture_exception(error)\n"
    )
