"""What the dashboard is made of: given to `build_app` by `__main__`, and by tests with other parts."""

import time
from collections.abc import Callable
from typing import Final

import jinja2
from aiohttp import web
from msgspec import Struct

from dashboard.auth.session import Secrets, SignedOut
from dashboard.auth.throttle import SignInThrottle
from dashboard.http.errors import unavailable
from dashboard.http.metrics import DashboardMetrics
from dashboard.http.proxies import Networks, client_address, is_from_trusted
from dashboard.ports import ChangePort, Projects
from dashboard.response_cache import ResponseCache
from dashboard.trial_queue import TrialQueue
from schemas.health import Health
from schemas.settings import DashboardSettings
from storage.reader.reader import ReadPort


class Dependencies(Struct, frozen=True):
    """The outside world: the reader of ClickHouse, the projects on Kafka, the clock (Unix milliseconds), and what changes issues."""

    reader: ReadPort
    projects: Projects
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    changes: ChangePort | None = None


class State(Struct, frozen=True):
    """What handlers share: settings, parts, and what lives in this process only."""

    settings: DashboardSettings
    parts: Dependencies
    secrets: Secrets
    templates: jinja2.Environment
    health: Health
    metrics: DashboardMetrics
    throttle: SignInThrottle
    trusted_proxies: Networks
    signed_out: SignedOut
    shared: ResponseCache
    trials: TrialQueue


STATE: Final = web.AppKey("state", State)


def state_of(request: web.Request) -> State:
    """The state of the application that serves this request."""
    return request.config_dict[STATE]


def address_of(request: web.Request) -> str:
    """Where the request comes from, as far as trusted proxies tell."""
    forwarded = request.headers.getall("X-Forwarded-For", [])
    return client_address(request.remote or "", forwarded, state_of(request).trusted_proxies)


def is_https(request: web.Request) -> bool:
    """Whether the asker speaks https, as far as a trusted proxy tells."""
    if not is_from_trusted(request.remote or "", state_of(request).trusted_proxies):
        return request.secure
    # A proxy behind another one may add its own word for the way between the two.
    told = ",".join(request.headers.getall("X-Forwarded-Proto", []))
    return "https" in [one.strip().lower() for one in told.split(",")]


def changes_of(state: State) -> ChangePort:
    """What changes issues. Raises Refused where there is nothing: a dashboard for reading only."""
    if state.parts.changes is None:
        raise unavailable("issues can't be changed here")
    return state.parts.changes
