"""Bulk changes of the issue list: the same change to every selected issue."""

from typing import Final
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from dashboard.auth.auth import IDENTITY, read_form
from dashboard.dependencies import State, changes_of, state_of
from dashboard.http.http_errors import invalid
from dashboard.http.responses import redirect
from dashboard.projects import project_of
from dashboard.view.text import plural
from schemas.changes import MAX_ASSIGNEE, MAX_ISSUES, MAX_RELEASE, NEXT, Update, is_issue
from schemas.errors import ChangePending
from schemas.projects import Project

LIST_PARAMETERS: Final = frozenset(
    {"query", "environment", "state", "sort", "range", "start", "end", "cursor"}
)
"""Parameters of the list that survive the redirect back to it."""
_IN: Final = "in "
MAX_WHERE: Final = len(_IN) + MAX_RELEASE
DONE: Final = {
    "resolve": "resolved",
    "ignore": "ignored",
    "reopen": "reopened",
    "assign": "assigned",
    "merge": "merged into one",
}
_STATUS: Final = {
    "ignore": Update(status="ignored"),
    "reopen": Update(status="open"),
}


async def change(request: web.Request) -> web.Response:
    """Make the change of the pressed button, then redirect to the list."""
    state, project, fields = state_of(request), project_of(request), await read_form(request)
    action, issues = fields.get("change", ""), await selected(request)
    if action not in DONE:
        raise invalid("change", f"one of {', '.join(DONE)}")
    if not issues or (action == "merge" and len(issues) < 2):
        return _back(project, fields.get("back", ""), {"done": "none"})
    by, result = request[IDENTITY].name, "done"
    try:
        if action == "merge":
            issues = await _merge(state, project, issues, by)
        else:
            await changes_of(state).update_many(project.number, issues, _update(action, fields), by=by)
    except ChangePending:
        result = "pending"
    changed = {"was": ",".join(issues)} if result == "done" and action != "assign" else {}
    where = {"where": fields["where"][:MAX_WHERE]} if action == "resolve" and fields.get("where") else {}
    return _back(
        project, fields.get("back", ""), {result: action, "count": str(len(issues))} | where | changed
    )


def _update(action: str, fields: dict[str, str]) -> Update:
    if action == "resolve":
        return Update(status="resolved", resolved_in=_resolved_in(fields.get("where", "")))
    assignee = fields.get("assignee", "").strip()[:MAX_ASSIGNEE] or None
    return _STATUS.get(action) or Update(assignee=assignee)


def _resolved_in(where: str) -> str | None:
    """The choice in the list of releases next to "Resolve": `next`, `in RELEASE`, or None, which means now.

    Raises HttpError.
    """
    if where in {"", NEXT}:
        return where or None
    release = where.removeprefix(_IN).strip()
    if not where.startswith(_IN) or not 0 < len(release) <= MAX_RELEASE:
        raise invalid("where", f"one of: nothing, {NEXT}, {_IN}RELEASE")
    return release


def undo_of(done: str, was: str) -> tuple[str, list[str], str]:
    """The change that undoes a bulk change, its issues, and the issue that others were merged into.

    Each is empty where there is none.
    """
    issues = [issue for issue in was.split(",") if is_issue(issue)][:MAX_ISSUES]
    if done == "merge":
        return "", [], next(iter(issues), "")
    undo = {"resolve": "reopen", "ignore": "reopen"}.get(done, "") if issues else ""
    return undo, issues if undo else [], ""


async def selected(request: web.Request) -> list[str]:
    """The selected issues, without duplicates. Raises HttpError."""
    issues = dict.fromkeys(map(str, (await request.post()).getall("issue", [])))
    if len(issues) > MAX_ISSUES or not all(map(is_issue, issues)):
        raise invalid("issue", f"at most {MAX_ISSUES} ids of sixteen hexadecimal digits")
    return list(issues)


def result_message(done: str, count: str, where: str = "") -> str:
    """The message above the list after a change; empty without a change.

    `where` is the choice next to "Resolve".
    """
    if done == "none":
        return "Nothing was changed: select issues first, at least two to merge."
    if done not in DONE or not (count.isascii() and count.isdecimal() and len(count) <= 3):
        return ""
    chosen = f" {'in the next release' if where == NEXT else where[:MAX_WHERE]}"
    is_chosen = done == "resolve" and (where == NEXT or where.startswith(_IN))
    return f"{plural(int(count), 'issue')} {DONE[done]}{chosen if is_chosen else ''}."


async def _merge(state: State, project: Project, issues: list[str], by: str) -> list[str]:
    """Merge into the issue with the most events: people know that one. Returns the issues, that one first."""
    changes = changes_of(state)
    rows = await changes.find(issues)
    if any(issue.project_id != project.id for issue in rows):
        raise invalid("issue", "only issues of this project")
    target = max(rows, key=lambda issue: (issue.total_events, issue.id))
    others = [issue.id for issue in rows if issue.id != target.id]
    if others:
        await changes.merge(target.id, others, by=by)
    return [target.id, *(issue for issue in issues if issue != target.id)]


def _back(project: Project, query: str, result: dict[str, str]) -> web.Response:
    parameters = {
        name: value for name, value in parse_qsl(query.removeprefix("?")) if name in LIST_PARAMETERS
    }
    return redirect(f"/projects/{project.id}/issues?{urlencode(parameters | result)}")
