# ruff: noqa: N816  # the protocol's names are camelCase
"""Reports the errors of a Python program to the ingestion service (protocol, section 2.11; contract, section 5).

    import svc

    svc.init(token="svc_pk_...", release="shop@1.4.2+318", ingest_url="http://127.0.0.1:8080")

From then on uncaught errors are reported; `svc.capture_exception()` reports a handled one. Before `init` no function
has an effect. The protocol's camelCase names (`svc.setUser`) are aliases. Only the standard library is required.
"""

from svc.client import VERSION
from svc.logs import LogHandler
from svc.reporting import (
    add_breadcrumb,
    capture_exception,
    clear_breadcrumbs,
    clear_tags,
    close,
    flush,
    get_breadcrumbs,
    init,
    session_active,
    session_background,
    set_tag,
    set_tags,
    set_user,
    stats,
    track,
    watch_loop,
)
from svc.web import AsgiMiddleware, WsgiMiddleware

__version__ = VERSION

addBreadcrumb = add_breadcrumb
captureException = capture_exception
clearBreadcrumbs = clear_breadcrumbs
clearTags = clear_tags
getBreadcrumbs = get_breadcrumbs
sessionActive = session_active
sessionBackground = session_background
setTag = set_tag
setTags = set_tags
setUser = set_user
watchLoop = watch_loop

__all__ = [
    "AsgiMiddleware",
    "LogHandler",
    "WsgiMiddleware",
    "__version__",
    "addBreadcrumb",
    "add_breadcrumb",
    "captureException",
    "capture_exception",
    "clearBreadcrumbs",
    "clearTags",
    "clear_breadcrumbs",
    "clear_tags",
    "close",
    "flush",
    "getBreadcrumbs",
    "get_breadcrumbs",
    "init",
    "sessionActive",
    "sessionBackground",
    "session_active",
    "session_background",
    "setTag",
    "setTags",
    "setUser",
    "set_tag",
    "set_tags",
    "set_user",
    "stats",
    "track",
    "watchLoop",
    "watch_loop",
]
