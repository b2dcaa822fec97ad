"""Bulk changes of the issue list: the same change to every selected issue."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from msgspec import Struct

from dashboard.auth.auth import IDENTITY, read_form
from dashboard.auth.authorize import require_issues
from dashboard.bulk_changes import BulkChange
from dashboard.dependencies import State, changes_of, state_of
from dashboard.http.http_errors import invalid, not_found
from dashboard.http.responses import redirect
from dashboard.pages.list_parameters import PLAIN_STATE, parameters_of
from dashboard.pages.render import page
from dashboard.person_query import with_person
from dashboard.requested_project import project_of
from dashboard.view.text import plural
from schemas.changes import MAX_ASSIGNEE, MAX_ISSUES, MAX_RELEASE, NEXT, Update, is_issue
from schemas.errors import ChangePending
from schemas.projects import Project
from storage.read.issues.issue_list import ListIssues

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


async def change_issues(request: web.Request) -> web.Response:
    """Make the change of the pressed button, then redirect to the list."""
    state, project, fields = state_of(request), project_of(request), await read_form(request)
    action, issues = fields.get("change", ""), await selected(request)
    back = fields.get("back", "")
    if action == "undo":
        made = state.bulk.find(project.number, fields.get("made", ""))
        if made is None:
            raise not_found("this dashboard no longer knows the change")
        number = state.bulk.undo(changes_of(state), made, request[IDENTITY].name)
        return _back(project, back, {"made": number})
    if action not in DONE:
        raise invalid("change", f"one of {', '.join(DONE)}")
    if fields.get("all") and action != "merge":
        return _back(project, back, {"made": _change_all(request, state, project, action, fields)})
    if not issues or (action == "merge" and len(issues) < 2):
        return _back(project, back, {"done": "none"})
    await require_issues(request, issues)
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
    return _back(project, back, {result: action, "count": str(len(issues))} | where | changed)


async def show_progress(request: web.Request) -> web.Response:
    """The notice of a change of many issues, without the rest of the page."""
    number = request.match_info["change"]
    return page(
        request,
        "bulk_progress.html",
        project=project_of(request),
        made=made_notice(state_of(request), project_of(request), number),
        back=f"?{request.query_string}",
    )


class MadeNotice(Struct, frozen=True):
    """The text of a page about a change of many issues."""

    id: str
    text: str
    is_running: bool
    is_good: bool
    can_undo: bool


def made_notice(state: State, project: Project, number: str) -> MadeNotice | None:
    """The notice of the change with this id; None without an id."""
    if not number:
        return None
    made = state.bulk.find(project.number, number)
    if made is None:
        text = "This dashboard no longer knows the change: it may have been restarted."
        return MadeNotice("", text, is_running=False, is_good=False, can_undo=False)
    if made.is_running:
        text = f"{made.done:,} of {plural(len(made.before), 'issue')} {_done(made.action)}…"
    else:
        text = result_message(made.action, made.done, made.where)
    if made.error:
        text += f" Then it stopped: {made.error}."
    is_undoable = not made.is_running and made.done > 0 and made.action != "undo"
    return MadeNotice(number, text, made.is_running, not made.error, is_undoable)


def _change_all(
    request: web.Request, state: State, project: Project, action: str, fields: dict[str, str]
) -> str:
    """Begin to change all issues of the form's list, on all its pages; returns the change's id."""
    query = dict(parse_qsl(fields.get("back", "").removeprefix("?")))
    listed = parameters_of(query, state.dependencies.now_ms(), PLAIN_STATE)
    call = ListIssues(project.number, with_person(request, listed.text), **listed.time_range.bounds)
    made = BulkChange(project.number, action, fields.get("where", "")[:MAX_WHERE], request[IDENTITY].name, [])
    reader, changes = state.dependencies.reader, changes_of(state)
    return state.bulk.start(reader, changes, made, call, _update(action, fields))


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


def _done(action: str) -> str:
    return DONE.get(action, "restored")


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


def result_of(parameters: Mapping[str, str]) -> str:
    """The message above the list after a change of selected issues; empty without a change."""
    done, count = parameters.get("done", ""), parameters.get("count", "")
    if done == "none":
        return "Nothing was changed: select issues first, at least two to merge."
    if done not in DONE or not (count.isascii() and count.isdecimal() and len(count) <= 3):
        return ""
    return result_message(done, int(count), parameters.get("where", ""))


def result_message(done: str, count: int, where: str) -> str:
    """The change made to some issues; `where` is the choice next to "Resolve"."""
    chosen = f" {'in the next release' if where == NEXT else where[:MAX_WHERE]}"
    is_chosen = done == "resolve" and (where == NEXT or where.startswith(_IN))
    return f"{plural(count, 'issue')} {_done(done)}{chosen if is_chosen else ''}."


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
