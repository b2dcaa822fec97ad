"""Classes of paths: for programs, open without sign-in, and safe as a redirect after sign-in."""

from typing import Final

API: Final = "/api/v1"
SIGN_IN: Final = "/sign-in"
OPENAPI: Final = f"{API}/openapi.json"
LIBRARIES: Final = "/libraries/"
_OPEN: Final = frozenset({"/healthz", "/readyz", "/metrics", SIGN_IN, OPENAPI, "/favicon.ico", "/robots.txt"})
_FOR_PROGRAMS: Final = frozenset({"/healthz", "/readyz", "/metrics"})


def is_for_programs(path: str) -> bool:
    """Whether errors of this path are JSON."""
    return path.startswith("/api/") or path == "/api" or path in _FOR_PROGRAMS


def is_open(path: str) -> bool:
    """Whether the path is public."""
    return path in _OPEN or path.startswith(("/static/", LIBRARIES))


def safe_next(path: str) -> str:
    """Where to redirect after sign-in: `path` if it is on this server, else `/`."""
    # A browser reads `//host` and `/\\host` as another server, and drops tabs and line ends before it looks.
    if not path.startswith("/") or path[1:2] in {"/", "\\"} or any(c <= " " or c == "\x7f" for c in path):
        return "/"
    return "/" if is_open(path.partition("?")[0]) else path
