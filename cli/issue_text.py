"""The text of `svc issues show`: an issue's fields and its newest changes."""

from collections.abc import Iterator, Sequence

from dashboard.view.activity import describe
from dashboard.view.text import flat, title
from dashboard.view.time_texts import exact, snooze
from schemas.read_api import ActivityRow, Issue

_LINE = 500
"""Printed characters of a message or comment; `--json` has all."""


def lines(issue: Issue, changes: Sequence[ActivityRow]) -> Iterator[str]:
    """The lines of the text."""
    yield flat(title(issue), _LINE)
    if issue.culprit:
        yield f"in {_line(issue.culprit)}"
    yield ""
    fields = _fields(issue)
    width = max(len(label) for label, _ in fields) + 2
    yield from (f"{label:<{width}}{_line(value)}" for label, value in fields if value)
    if changes:
        yield ""
        yield "History"
    yield from (f"  {_change(change, issue.id)}" for change in changes)


def _line(text: str) -> str:
    return flat(" ".join(text.split()), _LINE)


def _fields(issue: Issue) -> list[tuple[str, str]]:
    return [
        ("Issue", issue.id),
        ("Project", issue.project_id),
        ("State", _state(issue)),
        ("Assigned to", issue.assignee or "-"),
        ("Events", f"{issue.total_events:,} in all, {issue.events:,} in the last 14 days"),
        ("Users", f"{issue.total_users:,} in all, {issue.users:,} in the last 14 days"),
        ("First seen", _seen(issue.first_seen, issue.first_release)),
        ("Last seen", _seen(issue.last_seen, issue.last_release)),
        ("Environments", ", ".join(filter(None, issue.environments))),
        ("Platform", issue.platform),
        ("Fingerprints", ", ".join(issue.fingerprints)),
    ]


def _state(issue: Issue) -> str:
    if issue.regressed:
        return f"{issue.status}, regressed"
    if issue.status == "resolved" and issue.resolved_in:
        where = "the next release" if issue.resolved_in == "next" else issue.resolved_in
        return f"resolved in {where}"
    if issue.status == "ignored":
        return f"ignored {snooze(issue.ignore_until) or 'forever'}"
    return issue.status


def _seen(time: str, release: str) -> str:
    return f"{exact(time)}, {release}" if release else exact(time)


def _change(row: ActivityRow, issue: str) -> str:
    change = describe(row, issue)
    words = f"{change.title} {change.text}".strip()
    where = f", in the merged issue {change.merged_issue}" if change.merged_issue else ""
    return f"{exact(change.at)}  {_line(words)}, by {_line(change.by)}{where}"
