"""An issue as text to paste elsewhere: Markdown for a ticket, SQL for an analyst."""

from collections.abc import Iterator

from dashboard.view.event_sections import EventSections
from dashboard.view.stack_view import ErrorView, FrameView
from dashboard.view.text import flat, plural, title, users
from schemas.issues import issue_title
from schemas.read_api import Issue

_FRAMES = 5
_LINE = 300


def as_markdown(issue: Issue, event: EventSections | None, address: str) -> str:
    """Title, address, figures and the application's frames of an event, with the source of the first."""
    lines = [
        f"### {_code(title(issue))}",
        "",
        f"{address} · {issue.status}{', regressed' if issue.regressed else ''}",
        "",
        f"- {plural(issue.total_events, 'event')}, {users(issue.total_users)}",
        f"- first seen {issue.first_seen}{_in(issue.first_release)}, last {issue.last_seen}{_in(issue.last_release)}",
    ]
    if issue.environments:
        lines.append(f"- {', '.join(map(_code, issue.environments))}")
    for error in event.errors if event is not None else ():
        lines += ["", *_stack(error)]
    return "\n".join(lines) + "\n"


def as_sql(issue: Issue) -> str:
    """The newest events of the issue, for the views of analysts."""
    return (
        "SELECT *\nFROM analyst_events\n"
        f"WHERE project_id = {int(issue.project_id)} AND issue_id = '{issue.id}'\nORDER BY ts DESC\nLIMIT 100\n"
    )


def _stack(error: ErrorView) -> Iterator[str]:
    frames = [frame for group in error.groups for frame in group.frames]
    own = [frame for frame in frames if frame.in_app] or frames
    yield "```"
    yield _flat(issue_title(error.type, error.message))
    for number, frame in enumerate(own[:_FRAMES]):
        yield f"  {_flat(frame.function or '<anonymous>')} ({_flat(frame.location)})"
        if not number:
            yield from _source(frame)
    yield "```"


def _source(frame: FrameView) -> Iterator[str]:
    for line in frame.context:
        mark = ">" if line.is_frame_line else " "
        yield f"  {mark} {line.number:>5} {_flat(line.text + line.marked + line.rest, keep=True)}"


def _in(release: str) -> str:
    return f" in {_code(release)}" if release else ""


def _code(text: str) -> str:
    """Text of an event as code, where nothing in it is markup or a link: anyone can send events."""
    line = _flat(text).replace("`", "'")
    return f"`{line}`"


def _flat(text: str, *, keep: bool = False) -> str:
    """One line that can't end a block of code, with invisible characters as code points."""
    line = text if keep else " ".join(text.split())
    return flat(line.replace("\n", " ").replace("```", "'''"), _LINE)
