"""A transport for `sentry-sdk`: its errors become events of this protocol. The DSN has address and token."""

import os
import re
from datetime import datetime
from functools import partial
from typing import Any, Final

from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from svc.breadcrumbs import breadcrumb_on_wire, to_breadcrumb
from svc.client import Client
from svc.event import fit_event
from svc.limits import BREADCRUMBS, CAUSES, FRAMES, MESSAGE_CHARS, TAG_KEYS
from svc.notices import LOGGER, Notices
from svc.options import resolve
from svc.plain import clip, text_of
from svc.reporting import never_raises
from svc.source_files import mask_secrets
from svc.timestamps import iso
from svc.urls import scrub

Json = dict[str, Any]
_DEFAULT_GROUPING: Final = re.compile(r"\{\{ *default *\}\}")


class SvcTransport(Transport):
    """`sentry_sdk.init(dsn="https://TOKEN@HOST/1", transport=SvcTransport)`: sends by the rules of `svc`."""

    def __init__(self, options: Json) -> None:
        super().__init__(options)
        dsn, release, dist = self.parsed_dsn, options["release"] or "", options["dist"]
        assert dsn is not None
        given = {"token": dsn.public_key, "ingest_url": f"{dsn.scheme}://{dsn.netloc}{dsn.path}"}
        given["release"] = f"{release}+{dist}" if dist and "+" not in release else release
        resolved, problems = resolve(given | {"environment": options["environment"]}, {})
        self._notices = Notices()
        for problem in problems:
            self._notices.once(problem, "%s", problem)
        self._client = Client(resolved, self._notices)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._client.after_fork)

    @never_raises(None)
    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            event: Any = item.get_event()
            if event is None and item.type != "client_report":
                self._leave_out(str(item.type))
            elif event and self._client.transport is not None and event.get("logger") != LOGGER:
                converted = self._event(event)
                self._client.transport.submit(converted["id"], partial(fit_event, converted))

    def flush(self, timeout: float, callback: Any = None) -> None:  # noqa: ARG002
        if self._client.transport is not None:
            self._client.transport.flush(timeout)

    def _leave_out(self, what: str) -> None:
        self._notices.once(what, "left out, as events have no place for it: %s", what)

    def _event(self, sent: Json) -> Json:
        values: list[Json] = _inner(sent, "exception", "values") or [_message(sent)]
        user, url = sent.get("user") or {}, _inner(sent, "request", "url")
        if (sent.get("extra") or {}).keys() - {"sys.argv"}:
            self._leave_out("extra")
        if user.keys() & {"email", "ip_address"}:
            self._leave_out("email or IP address of the user")
        scope, ns = self._client.process_scope, _ns(sent)
        tags = scope.merged(sent.get("tags") or {})
        handled = "no" if _inner(values[-1], "mechanism", "handled") is False else "yes"
        own = {"handled": handled, "level": sent.get("level"), "transaction": sent.get("transaction")}
        added = scope.merged({**own, "url": url and scrub(url)})
        crumbs = (_inner(sent, "breadcrumbs", "values") or [])[-BREADCRUMBS:]
        return {
            "id": self._client.ids.new(ns),
            "timestamp": iso(ns),
            **self._client.builder.constant,
            "user": scope.user_of({"id": user.get("id"), "name": user.get("username")}) or None,
            "tags": dict([*(tags | added | tags).items()][:TAG_KEYS]),
            "breadcrumbs": [_breadcrumb(crumb) for crumb in crumbs if crumb.get("category") != LOGGER],
            "fingerprint": _fingerprint(sent),
            "traceId": (_inner(sent, "contexts", "trace") or {}).get("trace_id"),
            "error": self._error(values[-1], values, CAUSES),
        }

    def _error(self, link: Json, values: list[Json], causes: int) -> Json:
        """An exception with its cause: of a group the first member, else the one before. Only a group's have ids."""
        own_id, inner = _inner(link, "mechanism", "exception_id"), values[: values.index(link)][::-1]
        parts = [part for part in inner if _inner(part, "mechanism", "parent_id") == own_id]
        members = [part for part in parts if (_inner(part, "mechanism", "source") or "").endswith("]")]
        lines = [text_of(link.get("value") or "", MESSAGE_CHARS)]
        lines += [f"- {member['type']}: {text_of(member.get('value'), 500)}" for member in members[:10]]
        frames = (_inner(link, "stacktrace", "frames") or [])[-FRAMES:]
        error = {
            "type": text_of(link.get("type") or "Error", 200),
            "message": clip("\n".join(lines), MESSAGE_CHARS),
            "stack": [self._frame(frame) for frame in reversed(frames)],
        }
        cause = (members or parts)[:1] if causes else []
        return error | ({"cause": self._error(cause[0], values, causes - 1)} if cause else {})

    def _frame(self, sent: Json) -> Json:
        if sent.get("vars"):
            self._leave_out("vars")
        file, in_app = sent.get("abs_path") or "<unknown>", sent.get("in_app")
        facts = self._client.builder.framer.file_facts(file, sent.get("module"))
        return {
            "function": clip((sent.get("function") or "<unknown>").replace("<locals>.", ""), 300),
            "file": facts.file,
            "line": sent.get("lineno") or 1,
            "inApp": facts.in_app if in_app is None else in_app,
            "absolutePath": facts.absolute,
            "contextLine": mask_secrets(sent.get("context_line") or ""),
            "preContext": [mask_secrets(line) for line in sent.get("pre_context") or []],
            "postContext": [mask_secrets(line) for line in sent.get("post_context") or []],
        }


def _inner(sent: Json, key: str, inner: str) -> Any:
    return (sent.get(key) or {}).get(inner)


def _message(sent: Json) -> Json:
    """An error that is only a message, with the stack of its thread if the SDK attaches one."""
    text = _inner(sent, "logentry", "formatted") or _inner(sent, "logentry", "message") or sent.get("message")
    [thread, *_] = _inner(sent, "threads", "values") or [{}]
    return {**thread, "type": sent.get("logger") or "Message", "value": text}


def _fingerprint(sent: Json) -> list[str] | None:
    """As sent, unless the default grouping is a part of it. A logged message has its template, as in `svc`."""
    parts = [text_of(part, 500) for part in (sent.get("fingerprint") or [])[:20]]
    if not parts and "exception" not in sent and _inner(sent, "logentry", "params"):
        return [sent.get("logger") or "Message", sent["logentry"]["message"]]
    return None if not parts or any(map(_DEFAULT_GROUPING.search, parts)) else parts


def _breadcrumb(sent: Json) -> Json:
    data = {"category": sent.get("category"), **(sent.get("data") or {})}
    kind = {"log": "log", "http": "net"}.get(sent.get("type") or "", "custom")
    if kind == "net":
        method, status = data.get("http.method"), data.get("http.response.status_code")
        data = {"method": method, "url": data.get("url"), "status": status}
    crumb = {"type": kind, "message": sent.get("message"), "level": sent.get("level"), "data": data}
    return breadcrumb_on_wire(to_breadcrumb(_ns(sent), crumb))


def _ns(sent: Json) -> int:
    return round(datetime.fromisoformat(sent["timestamp"]).timestamp() * 1_000_000) * 1_000
