"""An event, field by field with the one that Sentry's SDK made of the same error."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

Json = dict[str, Any]
OWN = re.compile(r"svc: |.*/v1/events")
"""Breadcrumbs of our transport: its warnings and requests."""


def check_fields(sent: Json, event: Json) -> None:
    """Whether `event` says what Sentry's `sent` says."""
    values = inner(sent, "exception", "values") or [message_of(sent)]
    assert abs(seconds(event["timestamp"]) - seconds(sent["timestamp"])) < 0.002
    assert event["release"] == f"{sent['release']}+{sent['dist']}"
    assert event["environment"] == sent["environment"]
    assert event["traceId"] == sent["contexts"]["trace"]["trace_id"]
    user = sent.get("user") or {}
    named = {"id": user.get("id"), "name": user.get("username")}
    assert (event.get("user") or {}) == {key: str(value) for key, value in named.items() if value is not None}
    tags = {key: value for key, value in (sent.get("tags") or {}).items() if value is not None}
    handled = "no" if inner(values[-1], "mechanism", "handled") is False else "yes"
    own = {"handled": handled, "level": sent.get("level"), "transaction": sent.get("transaction")}
    expected = {key: str(value).lower() for key, value in {**own, **tags}.items() if value is not None}
    assert {key: value.lower() for key, value in event["tags"].items() if key != "url"} == expected
    assert ("url" in event["tags"]) == bool(inner(sent, "request", "url"))
    assert event.get("fingerprint") == fingerprint_of(sent)
    crumbs = sent.get("breadcrumbs") or []
    crumbs = crumbs["values"] if isinstance(crumbs, dict) else crumbs
    others = [crumb for crumb in crumbs if not OWN.match(label_of(crumb))]
    for crumb, ours in zip(others, event["breadcrumbs"], strict=True):
        check_breadcrumb(crumb, ours)
    link, error = values[-1], event["error"]
    while True:
        check_error(link, error, members_of(link, values))
        cause = next(iter(causes_of(link, values)), None)
        assert ("cause" in error) == (cause is not None)
        if cause is None:
            return
        link, error = cause, error["cause"]


def check_error(link: Json, error: Json, members: list[Json]) -> None:
    value = "\n- ".join([link["value"] or "", *(f"{one['type']}: {one['value']}" for one in members)])
    assert error["type"] == (link.get("type") or "Message")
    if len(value) <= 16_384:
        assert error["message"] == value
    else:
        assert (len(error["message"]), error["message"][:8_000]) == (16_384, value[:8_000])
    innermost = (inner(link, "stacktrace", "frames") or [])[:-101:-1]
    for frame, ours in zip(innermost, error["stack"], strict=True):
        name = re.sub(r"^async |^\?$|<locals>\.", "", frame.get("function") or "")
        assert ours.get("function", "") == name
        file, line, column = (
            frame.get("abs_path") or frame["filename"],
            frame.get("lineno"),
            frame.get("colno"),
        )
        if called := re.match(r"eval at .*\((.*):(\d+):(\d+)\)", file):
            file, line, column = called[1], int(called[2]), int(called[3])
        assert (ours["line"], ours.get("column")) == (line or 1, column if line else None)
        assert ours["file"].rpartition("/")[2] == file.rpartition("/")[2]
        if frame.get("in_app") is not None:
            assert ours["inApp"] == (frame["in_app"] and file != "<anonymous>")


def check_breadcrumb(crumb: Json, ours: Json) -> None:
    data, own = crumb.get("data") or {}, ours["data"]
    assert abs(seconds(ours["timestamp"]) - seconds(crumb["timestamp"])) < 0.002
    if ours["type"] == "net":
        methods = (data.get(key) for key in ("method", "http.method", "http.request.method"))
        assert own["method"] == next(filter(None, methods))
        assert own["url"].partition("?")[0] == data["url"].partition("?")[0]
        assert own["status"] == (data.get("status_code") or data.get("http.response.status_code"))
    elif ours["type"] == "nav":
        assert own["from"] == data["from"].partition("?")[0]
    elif ours["type"] == "user":
        assert own == {"action": crumb["category"].removeprefix("ui."), "target": crumb["message"]}
    else:
        assert (own["message"][:500], own["level"]) == (crumb["message"][:500], crumb["level"])
        assert ours["type"] == "log" or own.items() >= data.items()


def causes_of(link: Json, values: list[Json]) -> Iterator[Json]:
    """The members of a group, then the cause. Without ids it is the value before."""
    own = inner(link, "mechanism", "exception_id")
    if own is None:
        yield from values[: values.index(link)][-1:]
        return
    yield from members_of(link, values)
    yield from (one for one in values if inner(one, "mechanism", "parent_id") == own)


def members_of(link: Json, values: list[Json]) -> list[Json]:
    own = inner(link, "mechanism", "exception_id")
    children = [one for one in reversed(values) if inner(one, "mechanism", "parent_id") == own]
    return [one for one in children if re.search(r"\[\d+\]$", inner(one, "mechanism", "source") or "")]


def fingerprint_of(sent: Json) -> list[str] | None:
    logged = sent.get("logentry") or {}
    parts = [str(part) for part in sent.get("fingerprint") or ()]
    raised = any(value.get("type") for value in inner(sent, "exception", "values") or ())
    if not (parts or raised) and logged.get("params"):
        parts = [sent.get("logger") or "Message", logged["message"]]
    return parts if parts and "{{ default }}" not in parts else None


def message_of(sent: Json) -> Json:
    logged = sent.get("logentry") or {}
    value = logged.get("formatted") or logged.get("message") or sent.get("message")
    return {"type": sent.get("logger"), "value": value}


def label_of(crumb: Json) -> str:
    return str(crumb.get("message") or (crumb.get("data") or {}).get("url"))


def inner(sent: Json, key: str, name: str) -> Any:
    return (sent.get(key) or {}).get(name)


def seconds(at: float | str) -> float:
    return datetime.fromisoformat(at).timestamp() if isinstance(at, str) else at
