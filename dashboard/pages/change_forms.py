"""Changes from the controls of an issue's page."""

import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from control.issue_changes import set_discarded
from dashboard.auth.auth import IDENTITY, author_of, read_form
from dashboard.auth.authorize import require_issues
from dashboard.dependencies import changes_of, state_of
from dashboard.http.http_errors import invalid
from dashboard.http.inputs import read_issue
from dashboard.http.responses import redirect
from schemas.changes import MAX_ASSIGNEE, MAX_COMMENT, MAX_RELEASE, NEXT, IgnoreUntil, Update, is_issue
from schemas.errors import ChangePending
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, iso

Fields = dict[str, str]
ApplyChange = Callable[[web.Request, str, Fields], Awaitable[None]]
_MAX_OFFSET: Final = 14 * 60


async def change_issue(request: web.Request) -> web.Response:
    """Make the change of the form, then redirect to the issue, also while the change is still being applied."""
    action = (await read_form(request)).get("change", "")
    apply = _CHANGES.get(action)
    if apply is None:
        raise invalid("change", f"one of {', '.join(_CHANGES)}")
    return await _change(request, action, apply)


async def discard_issue(request: web.Request) -> web.Response:
    """Drop the issue's new events, or store them again, then redirect to the issue."""
    return await _change(request, "discard", _discard)


async def _change(request: web.Request, action: str, apply: ApplyChange) -> web.Response:
    issue, fields = read_issue(request.match_info["issue"]), await read_form(request)
    try:
        await apply(request, issue, fields)
    except ChangePending:
        return _back(issue, "pending", action, fields)
    return _back(issue, "done", action, fields)


def _back(issue: str, result: str, action: str, fields: Fields) -> web.Response:
    """Redirect to the form's page, with the parameters for its notice and for undo."""
    was = fields.get({"merge": "other", "unmerge": "fingerprint"}.get(action, "was"), "")[:MAX_ASSIGNEE]
    parameters = {"query": fields.get("query", ""), result: action, "was": was}
    return redirect(f"/issues/{issue}?{urlencode({name: text for name, text in parameters.items() if text})}")


async def _update(request: web.Request, issue: str, update: Update) -> None:
    await changes_of(state_of(request)).update(issue, update, by=request[IDENTITY].name)


async def _resolve(request: web.Request, issue: str, fields: Fields) -> None:
    where, release = fields.get("where", ""), fields.get("release", "").strip()[:MAX_RELEASE]
    if where == "release" and not release:
        raise invalid("release", "must name the release with the fix")
    resolved_in = NEXT if where == NEXT else release or None
    await _update(request, issue, Update(status="resolved", resolved_in=resolved_in))


async def _ignore(request: web.Request, issue: str, fields: Fields) -> None:
    now_ms = state_of(request).dependencies.now_ms()
    # A preset is one button: the snooze's condition, and its number.
    kind, _, preset = fields.get("until", "").partition(" ")
    until = _snooze(kind or fields.get("unit", ""), preset or fields.get("count", ""), now_ms)
    await _update(request, issue, Update(status="ignored", ignore_until=until))


async def _reopen(request: web.Request, issue: str, _: Fields) -> None:
    await _update(request, issue, Update(status="open"))


async def _assign(request: web.Request, issue: str, fields: Fields) -> None:
    await _update(request, issue, Update(assignee=fields.get("assignee", "").strip()[:200] or None))


async def _comment(request: web.Request, issue: str, fields: Fields) -> None:
    text = fields.get("text", "").strip()[:MAX_COMMENT]
    if not text:
        raise invalid("text", "must not be empty")
    await changes_of(state_of(request)).comment(issue, text, by=request[IDENTITY].name)


async def _merge(request: web.Request, issue: str, fields: Fields) -> None:
    other = fields.get("other", "").strip()
    if not is_issue(other):
        raise invalid("other", "the id of an issue: sixteen hexadecimal digits")
    await require_issues(request, [other])
    await changes_of(state_of(request)).merge(issue, [other], by=request[IDENTITY].name)


async def _unmerge(request: web.Request, issue: str, fields: Fields) -> None:
    fingerprint = fields.get("fingerprint", "")
    if not is_issue(fingerprint):
        raise invalid("fingerprint", "sixteen hexadecimal digits")
    await changes_of(state_of(request)).unmerge(issue, [fingerprint], by=request[IDENTITY].name)


async def _discard(request: web.Request, issue: str, fields: Fields) -> None:
    dependencies, changes = state_of(request).dependencies, changes_of(state_of(request))
    (current,) = await changes.find([issue])
    discard = fields.get("discard") == "yes"
    await set_discarded(dependencies.projects, changes, current, discard, author_of(request))


_CHANGES: Final[dict[str, ApplyChange]] = {
    "resolve": _resolve,
    "ignore": _ignore,
    "reopen": _reopen,
    "assign": _assign,
    "comment": _comment,
    "merge": _merge,
    "unmerge": _unmerge,
}


def _next_morning(now_ms: int, offset: str) -> int:
    """The next day's 9:00 in a zone (Unix ms)."""
    if not re.fullmatch(r"-?\d{1,3}", offset) or abs(int(offset)) > _MAX_OFFSET:
        raise invalid("until", "a time zone's offset must be a number of minutes")
    shift = int(offset) * MINUTE_MS
    return ((now_ms - shift) // DAY_MS + 1) * DAY_MS + 9 * HOUR_MS + shift


def _snooze(kind: str, count: str, now_ms: int) -> IgnoreUntil | None:
    """The condition that ends the snooze; None to ignore the issue forever.

    With `morning`, the number is the offset of the reader's zone from UTC in minutes, as
    `Date.getTimezoneOffset` has it.
    """
    if kind == "morning":
        return IgnoreUntil(time=iso(_next_morning(now_ms, count)))
    if kind == "escalating":
        return IgnoreUntil(escalating=True)
    if kind not in {"hours", "events", "users"}:
        return None
    if not (count.isascii() and count.isdecimal() and 1 <= len(count) <= 9 and int(count)):
        raise invalid("count", "must be a positive whole number")
    number = int(count)
    if kind == "hours":
        if number > 100_000:
            raise invalid("count", "at most 100,000 hours")
        return IgnoreUntil(time=iso(now_ms + number * HOUR_MS))
    return IgnoreUntil(events=number) if kind == "events" else IgnoreUntil(users=number)
