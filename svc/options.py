"""The options of `init`: validation, both spellings, defaults, environment (protocol, section 1)."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from svc.limits import BREADCRUMBS
from svc.plain import text_of

DEFAULT_INGEST_URL: Final = "http://127.0.0.1:8080"
EVENTS: Final = "events"
_RELEASE: Final = re.compile(r"[^+]+@[^@+]+\+.+", re.DOTALL)
_CAMEL: Final = re.compile("(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True)
class Capture:
    """The sources of automatic events. `logs` is None by default: only records of errors, only as breadcrumbs.

    With `True` exceptions that are logged become events, with `EVENTS` all errors that are logged.
    """

    errors: bool = True
    network: bool = False
    sessions: bool = False
    logs: bool | str | None = None
    requests: bool = True
    handled: bool = True
    thread: bool = True


@dataclass(frozen=True)
class Options:
    """All options of `init`, in documentation order. Times in seconds, sizes in bytes."""

    token: str | None = field(default=None, repr=False)
    release: str = "app@0.0.0+0"
    ingest_url: str = DEFAULT_INGEST_URL
    environment: str = "prod"
    identity: bool = False
    host: bool | str = False
    capture: Capture = Capture()
    track_auto_breadcrumb: bool = True
    in_app_include: Sequence[str] = ()
    in_app_exclude: Sequence[str] = ()
    project_root: str | None = None
    source_context: bool = True
    breadcrumb_capacity: int = BREADCRUMBS
    before_send: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None
    on_rejected: Callable[[list[dict[str, Any]]], None] | None = None
    queue_dir: str | None = None
    queue_size: int = 1_000
    queue_bytes: int = 16 * 1_048_576
    flush_interval: float = 1.0
    request_timeout: float = 10.0
    shutdown_timeout: float = 2.0


def resolve(given: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[Options, list[str]]:
    """The options, and a message for each problem with the arguments. Never raises.

    Names may be spelled `ingest_url` or `ingestUrl`. An invalid value is replaced by its default. Without a valid token
    or ingest URL, `token` is None and nothing is sent.
    """
    problems: list[str] = []
    names = {option.name: option for option in fields(Options)}
    values: dict[str, Any] = {}
    for spelling, value in given.items():
        name = snake(spelling)
        if name not in names:
            problems.append(f"init has no option {text_of(spelling, 64)!r}")
        elif value is not None:
            values[name] = value
    checked = {name: value for name, value in values.items() if _is_valid(name, value, problems)}
    checked["capture"] = _capture(values.get("capture"), problems)
    checked["release"] = _release(values.get("release"), problems)
    checked["token"] = _token(checked.get("token") or setting("SVC_TOKEN", environ, problems), problems)
    url = checked.get("ingest_url") or setting("SVC_INGEST_URL", environ, problems) or DEFAULT_INGEST_URL
    checked["ingest_url"] = url.rstrip("/")
    if problem := _url_problem(checked["ingest_url"]):
        problems.append(f"{problem}; nothing will be reported")
        checked["token"] = None
    return Options(**checked), problems


def snake(name: str) -> str:
    """`ingestUrl` as `ingest_url`."""
    return _CAMEL.sub(lambda match: "_" + match[1].lower(), name)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "token": (str,), "ingest_url": (str,), "environment": (str,), "project_root": (str, Path), "queue_dir": (str, Path),
    "identity": (bool,), "host": (bool, str), "track_auto_breadcrumb": (bool,), "source_context": (bool,),
    "in_app_include": (list, tuple, set, frozenset), "in_app_exclude": (list, tuple, set, frozenset),
    "breadcrumb_capacity": (int,), "queue_size": (int,), "queue_bytes": (int,),
    "flush_interval": (int, float), "request_timeout": (int, float), "shutdown_timeout": (int, float),
}  # fmt: skip


def _is_valid(name: str, value: object, problems: list[str]) -> bool:
    if name in {"capture", "release"}:
        return False
    kinds = _KINDS.get(name)
    valid = callable(value) if kinds is None else isinstance(value, kinds)
    if valid and isinstance(value, (int, float)) and not isinstance(value, bool):
        valid = 0 <= value < 1e9 and not (name == "breadcrumb_capacity" and value > BREADCRUMBS)
    if not valid:
        problems.append(f"option {name} cannot be {text_of(value, 64)!r}")
    return valid


def _capture(value: object, problems: list[str]) -> Capture:
    if value is None:
        return Capture()
    if not isinstance(value, Mapping):
        problems.append("option capture takes an object such as {'network': True}")
        return Capture()
    flags: dict[str, Any] = {}
    for name, flag in value.items():
        if name not in Capture.__dataclass_fields__:
            problems.append(f"option capture has no {text_of(name, 64)!r}")
        elif name == "logs" and flag == EVENTS:
            flags[name] = EVENTS
        elif isinstance(flag, str):
            problems.append(f"option capture: {name} cannot be {text_of(flag, 64)!r}")
        else:
            flags[name] = bool(flag)
    return Capture(**flags)


def _release(value: object, problems: list[str]) -> str:
    """A release in the form of section 2.1; missing parts are the program's name, version 0.0.0 and build 0."""
    given = text_of(value, 200).strip() if value is not None else ""
    if _RELEASE.fullmatch(given):
        return given
    name, version, build = _release_parts(given)
    release = f"{_name(name) or _program()}@{_word(version) or '0.0.0'}+{_word(build) or '0'}"
    problem = (
        f"release {given!r} does not have the form <app-name>@<version>+<build>" if given else "no release"
    )
    problems.append(f"{problem}; using {release!r}")
    return release


def _word(text: str) -> str:
    return re.sub(r"[@+\s]+", "-", text).strip("-")


def _name(text: str) -> str:
    return re.sub(r"[+\s]+", "-", text).strip("-")


def _program() -> str:
    return _word(Path(sys.argv[0] if getattr(sys, "argv", None) else "").stem) or "app"


def release_parts(release: str) -> tuple[str, str]:
    """Version and build of a valid release."""
    _, version, build = _release_parts(release)
    return version, build


def _release_parts(release: str) -> tuple[str, str, str]:
    """Name, version and build, split as the server does: a name may begin with `@`, like an npm scope."""
    front, _, build = release.partition("+")
    name, _, version = front.rpartition("@")
    return name, version, build


def setting(name: str, environ: Mapping[str, str], problems: list[str]) -> str | None:
    """The variable's value, or the content of the file that `<name>_FILE` names."""
    if environ.get(name):
        return environ[name].strip()
    path = environ.get(f"{name}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        problems.append(f"{name}_FILE cannot be read")
        return None


def _token(value: str | None, problems: list[str]) -> str | None:
    if not value:
        problems.append("no token (init(token=...) or SVC_TOKEN); nothing will be reported")
        return None
    value = value.strip()
    if not (value.isascii() and value.isprintable() and " " not in value):
        problems.append("the token contains invalid characters; nothing will be reported")
        return None
    return value


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "the ingest URL is invalid"
    if (
        parts.scheme not in {"http", "https"}
        or not host
        or not (url.isascii() and url.isprintable() and " " not in url)
    ):
        return "the ingest URL must be http:// or https:// with a host"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "the ingest URL must contain only an address; the token is a separate option"
    return None
