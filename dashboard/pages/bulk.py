"""What the list's controls ask for: the same change to every selected issue."""

import asyncio
from typing import Final
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from dashboard.api.operation import find_project
from dashboard.auth.auth import IDENTITY, form
from dashboard.dependencies import State, changes_of, state_of
from dashboard.http.errors import invalid
from dashboard.http.wire import redirect
from schemas.changes import MAX_ASSIGNEE, MAX_ISSUES, Update, is_issue
from schemas.projects import Project
from storage.reader.answers import Issue
from storage.reader.issue_calls import GetIssue

KEPT: Final = frozenset({"query", "environment", "state", "sort", "range", "start", "end", "cursor"})
"""What of the list's address is kept for going back to it."""
DONE: Final = {
    "resolve": "resolved",
    "ignore": "ignored",
    "reopen": "opened again",
    "assign": "assigned",
    "merge": "merged into one",
}
_STATUS: Final = {
    "resolve": Update(status="resolved"),
    "ignore": Update(status="ignored"),
    "reopen": Update(status="open"),
}
_AT_ONCE: Final = 4


async def change(request: web.Request) -> web.Response:
    """Make the change that the pressed button names, then show the list again."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    fields = await form(request)
    wanted, issues = fields.get("change", ""), await selected(request)
    if wanted not in DONE:
        raise invalid("change", f"one of {', '.join(DONE)}")
    if not issues or (wanted == "merge" and len(issues) < 2):
        return _back(project, fields.get("back", ""), {"done": "none"})
    by = request[IDENTITY].name
    if wanted == "merge":
        await _merge(state, project, issues, by)
    else:
        assignee = fields.get("assignee", "").strip()[:MAX_ASSIGNEE] or None
        update = _STATUS.get(wanted) or Update(assignee=assignee)
        await changes_of(state).update_many(project.number, issues, update, by=by)
    return _back(project, fields.get("back", ""), {"done": wanted, "count": str(len(issues))})


async def selected(request: web.Request) -> list[str]:
    """The issues that were ticked, each once. Raises Refused."""
    given = dict.fromkeys(map(str, (await request.post()).getall("issue", [])))
    if len(given) > MAX_ISSUES or not all(map(is_issue, given)):
        raise invalid("issue", f"at most {MAX_ISSUES} ids of sixteen hexadecimal digits")
    return list(given)


def words(done: str, count: str) -> str:
    """What is said above the list after a change; empty where nothing was asked for."""
    if done == "none":
        return "Nothing was changed: select issues first, two or more to merge."
    if done not in DONE or not (count.isascii() and count.isdecimal() and len(count) <= 3):
        return ""
    return f"{int(count)} {'issue' if int(count) == 1 else 'issues'} {DONE[done]}."


async def _merge(state: State, project: Project, issues: list[str], by: str) -> None:
    """Into the one with most events: that is where people look."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def look(issue: str) -> Issue:
        async with turns:
            return await state.parts.reader.read(GetIssue(issue))

    found = await asyncio.gather(*map(look, issues))
    if any(issue.project_id != project.id for issue in found):
        raise invalid("issue", "only issues of this project")
    whole = max(found, key=lambda issue: (issue.total_events, issue.id))
    others = [issue.id for issue in found if issue.id != whole.id]
    if others:
        await changes_of(state).merge(whole.id, others, by=by)


def _back(project: Project, address: str, more: dict[str, str]) -> web.Response:
    kept = {name: value for name, value in parse_qsl(address.removeprefix("?")) if name in KEPT}
    return redirect(f"/projects/{project.id}/issues?{urlencode(kept | more)}")
