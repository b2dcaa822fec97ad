"""The notice after a change of an issue, with the form that undoes it."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from dashboard.view.time_texts import snooze
from schemas.changes import MAX_ASSIGNEE, is_issue
from schemas.ids import hex64, issue_id
from schemas.read_api import Issue

Fields = dict[str, str]
_STATES: Final = {"resolve": "resolved", "ignore": "ignored", "reopen": "open"}
_UNSEEN: Final = frozenset({"assign", "comment", "discard"})
"""Changes of which the issue alone doesn't say whether they were made."""
_UNDONE_BY: Final = {state: change for change, state in _STATES.items()}


class ChangeNotice(Struct, frozen=True):
    """A sentence, whether the change is already in the issue, and the fields of the form that undoes it, if one can."""

    text: str
    is_done: bool
    undo: Fields | None = None


def change_notice(change: str, was: str, issue: Issue, *, is_confirmed: bool) -> ChangeNotice | None:
    """The notice of a change that was sent; `was` is the state, assignee or other issue of before, as the form sent it.

    One that isn't confirmed counts as done once the issue shows it, if it does.
    """
    write = _NOTICES.get(change)
    if write is None:
        return None
    return write(issue, was) if is_confirmed or change not in _UNSEEN else ChangeNotice("", is_done=False)


def _status(change: str, write: Callable[[Issue], str]) -> Callable[[Issue, str], ChangeNotice]:
    def notice(issue: Issue, was: str) -> ChangeNotice:
        undo = {"change": _UNDONE_BY[was]} if was in _UNDONE_BY and was != _STATES[change] else None
        if issue.status != _STATES[change]:
            return ChangeNotice("", is_done=False)
        return ChangeNotice(write(issue), is_done=True, undo=undo)

    return notice


def _resolved(issue: Issue) -> str:
    if not issue.resolved_in:
        return "Resolved."
    where = "the next release" if issue.resolved_in == "next" else issue.resolved_in
    return f"Resolved in {where}."


def ignored(until: Mapping[str, object] | None) -> str:
    """How long an issue is ignored."""
    return f"Ignored {snooze(until) or 'until it is reopened'}."


def _assigned(issue: Issue, was: str) -> ChangeNotice:
    text = f"Assigned to {issue.assignee}." if issue.assignee else "Unassigned."
    undo = {"change": "assign", "assignee": was[:MAX_ASSIGNEE]} if was != (issue.assignee or "") else None
    return ChangeNotice(text, is_done=True, undo=undo)


def _merged(issue: Issue, was: str) -> ChangeNotice:
    project = int(issue.project_id)
    of_other = [one for one in issue.fingerprints[1:] if hex64(issue_id(project, int(one, 16))) == was]
    if not is_issue(was) or not of_other:
        return ChangeNotice("", is_done=False)
    return ChangeNotice(
        f"Issue {was} was merged into this one.",
        is_done=True,
        undo={"change": "unmerge", "fingerprint": of_other[0]},
    )


def _unmerged(issue: Issue, was: str) -> ChangeNotice:
    if not is_issue(was) or was in issue.fingerprints:
        return ChangeNotice("", is_done=False)
    other = hex64(issue_id(int(issue.project_id), int(was, 16)))
    return ChangeNotice(
        f"The events of {was} are a separate issue again.",
        is_done=True,
        undo={"change": "merge", "other": other},
    )


_NOTICES: Final[dict[str, Callable[[Issue, str], ChangeNotice]]] = {
    "resolve": _status("resolve", _resolved),
    "ignore": _status("ignore", lambda issue: ignored(issue.ignore_until)),
    "reopen": _status("reopen", lambda _: "Reopened."),
    "assign": _assigned,
    "comment": lambda *_: ChangeNotice("The comment is in the history.", is_done=True),
    "merge": _merged,
    "unmerge": _unmerged,
    "discard": lambda *_: ChangeNotice("The choice applies to new events of this issue.", is_done=True),
}
