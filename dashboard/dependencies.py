"""The dashboard's dependencies, which tests replace, and the state that its handlers share."""

import time
from collections.abc import Callable
from typing import Final

import jinja2
from aiohttp import web
from msgspec import Struct

from broker.pipeline_lag import Lag, PipelineLag
from control.issue_changes import IssueChanges
from control.project_store import ProjectStore
from dashboard.auth.access import Roles
from dashboard.auth.proxy_identity import ProxyHeaders
from dashboard.auth.session import RevokedSessions, Secrets
from dashboard.auth.throttle import SignInThrottle
from dashboard.bulk_changes import BulkChanges
from dashboard.http.http_errors import unavailable
from dashboard.http.http_metrics import DashboardMetrics
from dashboard.http.proxies import Networks, client_address, is_from_trusted
from dashboard.kept_reads import KeptReads
from dashboard.trial_queue import TrialQueue
from notify.history import AppendRecord, ReadHistory
from schemas.health import Health
from schemas.read_api import Release
from schemas.settings import DashboardSettings
from sourcemaps.resolver import Resolver
from storage.artifact_store import ArtifactStore
from storage.read.reader import Reader


class Dependencies(Struct, frozen=True):
    """The ClickHouse reader and the other dependencies of the dashboard.

    `projects` are on Kafka. `now_ms` is the clock (Unix ms). Without `changes` the dashboard is read-only.
    `notifications` reads the log of notifications, `notify` adds to it. `lag` is the pipeline's, None if unknown.
    Without `artifacts` no source map can be uploaded.
    """

    reader: Reader
    projects: ProjectStore
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    changes: IssueChanges | None = None
    notifications: ReadHistory | None = None
    lag: PipelineLag | None = None
    notify: AppendRecord | None = None
    artifacts: ArtifactStore | None = None


class State(Struct, frozen=True):
    """Shared by all handlers: settings, dependencies, and the state of this process."""

    settings: DashboardSettings
    dependencies: Dependencies
    secrets: Secrets
    templates: jinja2.Environment
    health: Health
    metrics: DashboardMetrics
    throttle: SignInThrottle
    trusted_proxies: Networks
    proxy: ProxyHeaders
    roles: Roles
    revoked_sessions: RevokedSessions
    trials: TrialQueue
    bulk: BulkChanges
    releases: KeptReads[Release]
    assignees: KeptReads[str]
    resolver: Resolver


STATE: Final = web.AppKey("state", State)


def state_of(request: web.Request) -> State:
    """The state of the application that serves this request."""
    return request.config_dict[STATE]


def address_of(request: web.Request) -> str:
    """The client's address, as far as trusted proxies name it."""
    forwarded = request.headers.getall("X-Forwarded-For", [])
    return client_address(request.remote or "", forwarded, state_of(request).trusted_proxies)


def is_https(request: web.Request) -> bool:
    """Whether the client uses https, as far as a trusted proxy says so."""
    if not is_from_trusted(request.remote or "", state_of(request).trusted_proxies):
        return request.secure
    # A proxy behind another proxy may append the protocol between the two.
    protocols = ",".join(request.headers.getall("X-Forwarded-Proto", []))
    return "https" in [protocol.strip().lower() for protocol in protocols.split(",")]


def dashboard_address(request: web.Request) -> str:
    """The dashboard's address: as configured, else the one that the browser named, which may be any."""
    scheme = "https" if is_https(request) else "http"
    return state_of(request).settings.dashboard_url.rstrip("/") or f"{scheme}://{request.host}"


def lag_of(state: State) -> Lag:
    """How far the pipeline is behind, as the last look in the background found."""
    lag = state.dependencies.lag
    return Lag() if lag is None else lag.lag


def changes_of(state: State) -> IssueChanges:
    """The `IssueChanges` of this process. Raises HttpError if the dashboard is read-only."""
    if state.dependencies.changes is None:
        raise unavailable("issues can't be changed here")
    return state.dependencies.changes
