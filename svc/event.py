"""Builds the event of section 2.1 from a captured error and reduces it to at most one megabyte."""

import platform
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from svc import limits
from svc.breadcrumbs import breadcrumb_on_wire
from svc.exception_chain import ExceptionInfo
from svc.frames import Framer
from svc.options import Options, release_parts
from svc.plain import clip, encode
from svc.scope import Snapshot
from svc.timestamps import iso


class CapturedError(NamedTuple):
    """Everything that a capture collects in the calling thread; the event may be built later, elsewhere."""

    id: str
    ns: int
    chain: list[ExceptionInfo]
    scope: Snapshot
    fingerprint: list[str] | None


class Builder:
    """Builds events from captured errors; computes the process-wide constant fields once."""

    def __init__(self, options: Options) -> None:
        version, build = release_parts(options.release)
        runtime = {"name": platform.python_implementation(), "version": platform.python_version()}
        self.framer = Framer(
            options.in_app_include, options.in_app_exclude, options.project_root, options.source_context
        )
        self.constant = {
            "kind": "error",
            "platform": "python",
            "release": options.release,
            "environment": clip(options.environment, 200),
            "device": {"os": "other", "osVersion": _system()},
            "app": {"version": version, "build": build, "framework": runtime},
        }

    def event(self, captured: CapturedError) -> dict[str, Any]:
        """The event; optional fields are omitted if empty."""
        user, tags, crumbs = captured.scope
        event: dict[str, Any] = {"id": captured.id, "timestamp": iso(captured.ns), **self.constant}
        if user is not None:
            event["user"] = user
        if tags:
            event["tags"] = tags
        if crumbs:
            event["breadcrumbs"] = [breadcrumb_on_wire(crumb) for crumb in crumbs[-limits.BREADCRUMBS :]]
        if captured.fingerprint is not None:
            event["fingerprint"] = captured.fingerprint
        event["error"] = self._error(captured.chain)
        for raised in captured.chain:
            for what in raised.trimmed:
                _tell_trimmed(event, what)
        return event

    def _error(self, chain: list[ExceptionInfo]) -> dict[str, Any]:
        error: dict[str, Any] = {}
        for raised in reversed(chain):
            stack = self.framer.frames(raised.sites)
            cause, error = error, {"type": raised.type, "message": raised.message, "stack": stack}
            if cause:
                error["cause"] = cause
        return error


def _system() -> str:
    return f"{platform.system() or sys.platform} {platform.release()}".strip()


def fit_event(event: dict[str, Any], limit: int = limits.MAX_EVENT_BYTES) -> bytes | None:
    """The event as JSON of at most `limit` bytes, reduced step by step; None if the minimum is still too large."""
    encoded = encode(event)
    for what, reduce in _REDUCTIONS.items():
        if len(encoded) <= limit:
            break
        reduce(event)
        if len(encode(event)) < len(encoded):
            _tell_trimmed(event, what)
        encoded = encode(event)
    return encoded if len(encoded) <= limit else None


def _tell_trimmed(event: dict[str, Any], what: str) -> None:
    """Say in the tag `trimmed` what was left out, unless the application has 50 tags."""
    tags = event.get("tags", {})
    trimmed = tags.get("trimmed")
    if what not in (trimmed or "") and len(tags.keys() - {"trimmed"}) < limits.TAG_KEYS:
        event["tags"] = {**tags, "trimmed": f"{trimmed}, {what}" if trimmed else what}


def _each_error(event: dict[str, Any]) -> list[dict[str, Any]]:
    errors, error = [], event.get("error")
    while isinstance(error, dict):
        errors.append(error)
        error = error.get("cause")
    return errors


def _without_context(event: dict[str, Any], *, keep_in_app: bool = False) -> None:
    for error in _each_error(event):
        error["stack"] = [
            {
                k: v
                for k, v in frame.items()
                if "context" not in k.lower() or (keep_in_app and frame.get("inApp"))
            }
            for frame in error["stack"]
        ]


def _last_breadcrumbs(event: dict[str, Any]) -> None:
    if "breadcrumbs" in event:
        event["breadcrumbs"] = event["breadcrumbs"][-20:]


def _without_breadcrumbs(event: dict[str, Any]) -> None:
    event.pop("breadcrumbs", None)


def _short_messages(event: dict[str, Any]) -> None:
    for error in _each_error(event):
        error["message"] = clip(error["message"], 1_000)


def _short_stacks(event: dict[str, Any]) -> None:
    for error in _each_error(event):
        error["stack"] = error["stack"][:10] + error["stack"][10:][-10:]


_REDUCTIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "context of libraries": partial(_without_context, keep_in_app=True),
    "all context": _without_context,
    "breadcrumbs": _last_breadcrumbs,
    "all breadcrumbs": _without_breadcrumbs,
    "messages": _short_messages,
    "stacks": _short_stacks,
}
