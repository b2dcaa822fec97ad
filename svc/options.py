"""What `init` was asked for, checked and completed: both spellings, defaults, environment (protocol, section 1)."""

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
_RELEASE: Final = re.compile(r"[^+]+@[^@+]+\+.+", re.DOTALL)
_CAMEL: Final = re.compile("(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True)
class Capture:
    """What is captured without being asked for each time. Only uncaught errors are, unless told otherwise."""

    errors: bool = True
    network: bool = False
    sessions: bool = False
    logs: bool = False


@dataclass(frozen=True)
class Options:
    """All of `init`, in the order of its documentation. Times in seconds, sizes in bytes."""

    token: str | None = field(default=None, repr=False)
    release: str = "app@0.0.0+0"
    ingest_url: str = DEFAULT_INGEST_URL
    environment: str = "prod"
    identity: bool = False
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
    """The options, and a sentence for each thing that was wrong with what was given. Never raises.

    Names are taken as `ingest_url` and as `ingestUrl`. A wrong value is left out and its default used. Without a usable
    token or ingest URL `token` is None and nothing is sent.
    """
    problems: list[str] = []
    names = {option.name: option for option in fields(Options)}
    values: dict[str, Any] = {}
    for spelled, value in given.items():
        name = snake(spelled)
        if name not in names:
            problems.append(f"init knows no option {text_of(spelled, 64)!r}")
        elif value is not None:
            values[name] = value
    checked = {name: value for name, value in values.items() if _fits(name, value, problems)}
    checked["capture"] = _capture(values.get("capture"), problems)
    checked["release"] = _release(values.get("release"), problems)
    checked["token"] = _token(checked.get("token") or setting("SVC_TOKEN", environ, problems), problems)
    url = checked.get("ingest_url") or setting("SVC_INGEST_URL", environ, problems) or DEFAULT_INGEST_URL
    checked["ingest_url"] = url.rstrip("/")
    if wrong := _wrong_url(checked["ingest_url"]):
        problems.append(f"{wrong}; nothing will be reported")
        checked["token"] = None
    return Options(**checked), problems


def snake(name: str) -> str:
    """`ingestUrl` as `ingest_url`."""
    return _CAMEL.sub(lambda match: "_" + match[1].lower(), name)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "token": (str,), "ingest_url": (str,), "environment": (str,), "project_root": (str, Path), "queue_dir": (str, Path),
    "identity": (bool,), "track_auto_breadcrumb": (bool,), "source_context": (bool,),
    "in_app_include": (list, tuple, set, frozenset), "in_app_exclude": (list, tuple, set, frozenset),
    "breadcrumb_capacity": (int,), "queue_size": (int,), "queue_bytes": (int,),
    "flush_interval": (int, float), "request_timeout": (int, float), "shutdown_timeout": (int, float),
}  # fmt: skip


def _fits(name: str, value: object, problems: list[str]) -> bool:
    if name in {"capture", "release"}:
        return False
    kinds = _KINDS.get(name)
    good = callable(value) if kinds is None else isinstance(value, kinds)
    if good and isinstance(value, (int, float)) and not isinstance(value, bool):
        good = 0 <= value < 1e9 and not (name == "breadcrumb_capacity" and value > BREADCRUMBS)
    if not good:
        problems.append(f"option {name} cannot be {text_of(value, 64)!r}")
    return good


def _capture(value: object, problems: list[str]) -> Capture:
    if value is None:
        return Capture()
    if not isinstance(value, Mapping):
        problems.append("option capture takes an object such as {'network': True}")
        return Capture()
    flags = {}
    for name, flag in value.items():
        if name in Capture.__dataclass_fields__:
            flags[name] = bool(flag)
        else:
            problems.append(f"option capture knows no {text_of(name, 64)!r}")
    return Capture(**flags)


def _release(value: object, problems: list[str]) -> str:
    """A release of the form of section 2.1, made from what there is: the program's name, version 0.0.0, build 0."""
    given = text_of(value, 200).strip() if value is not None else ""
    if _RELEASE.fullmatch(given):
        return given
    name, version, build = _release_parts(given)
    made = f"{_name(name) or _program()}@{_word(version) or '0.0.0'}+{_word(build) or '0'}"
    wrong = (
        f"release {given!r} does not have the form <app-name>@<version>+<build>" if given else "no release"
    )
    problems.append(f"{wrong}; using {made!r}")
    return made


def _word(text: str) -> str:
    return re.sub(r"[@+\s]+", "-", text).strip("-")


def _name(text: str) -> str:
    return re.sub(r"[+\s]+", "-", text).strip("-")


def _program() -> str:
    return _word(Path(sys.argv[0] if getattr(sys, "argv", None) else "").stem) or "app"


def release_parts(release: str) -> tuple[str, str]:
    """Version and build of a release that has the form."""
    _, version, build = _release_parts(release)
    return version, build


def _release_parts(release: str) -> tuple[str, str, str]:
    """Name, version and build as the server parts them: a name may begin with `@`, as those of npm scopes do."""
    front, _, build = release.partition("+")
    name, _, version = front.rpartition("@")
    return name, version, build


def setting(name: str, environ: Mapping[str, str], problems: list[str]) -> str | None:
    """A variable, or the content of the file that `<name>_FILE` names."""
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
        problems.append("the token has characters that no token has; nothing will be reported")
        return None
    return value


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "the ingest URL cannot be read"
    if (
        parts.scheme not in {"http", "https"}
        or not host
        or not (url.isascii() and url.isprintable() and " " not in url)
    ):
        return "the ingest URL must be http:// or https:// with a host"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "the ingest URL carries more than an address; the token is an option of its own"
    return None
