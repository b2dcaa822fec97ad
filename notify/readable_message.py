"""A message as people read it, made of a decision and the details of its issues. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from notify.rule_queue import RuleDecision
from schemas.issues import issue_title
from schemas.messages import MessageCause, MessageIssue, Named, WebhookMessage
from schemas.notifications import Cause
from schemas.read_api import NO_SOURCE, Issue, IssueSource

MAX_LISTED: Final = 20
"""Causes that a message describes; it counts all."""
_TITLE_CHARS: Final = 160
_TEXT_CHARS: Final = 300
_BARS: Final = "▁▂▃▄▅▆▇█"
_JOINER: Final = "\u2060"
_LOOKALIKES: Final = str.maketrans({"<": "\u2039", ">": "\u203a", "`": "'", "*": "\u2217", "~": "\u223c"})
_ACTIVE: Final = re.compile(r"[@#](?=[^\W\d])|:(?=[^\s:\d])|\.(?=[^\W\d_]{2})|\](?=[(\[:])|\|(?=\|)")
"""Begins of mentions, addresses (chats link those without a scheme too), and parts of Markdown's links and spoilers."""
_EMPHASIS: Final = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_LINE_START: Final = re.compile(r"(?=[-#+=|]|\d+[.)])")
"""The start of a heading, a list or a table."""
KINDS: Final = {
    "created": "New issue",
    "regressed": "Regressed",
    "reopened": "No longer ignored",
    "seenInRelease": "First event in release {}",
    "seenInEnvironment": "First event in environment {}",
    "usersReached": "{} users",
    "escalated": "Escalating",
}
"""The cause in words; `{}` is its value."""
_REASONS: Final = {
    "created": "it is the first event of an issue",
    "regressed": "it was resolved, and came back in release {}",
    "reopened": "its snooze has ended",
    "seenInRelease": "it had no event in this release before",
    "seenInEnvironment": "it had no event in this environment before",
    "usersReached": "{} users have met it",
    "escalated": "{} events within an hour are far more than before",
}


class ReadableMessage(Struct, frozen=True):
    """A message for a channel: `id` is the same at each attempt, `data` is its content for programs."""

    id: str
    to: tuple[str, ...]
    title: str
    blocks: tuple[str, ...]
    count: int
    footer: str
    data: dict[str, Any]

    @property
    def body(self) -> str:
        """The whole text."""
        return self._body(len(self.blocks))

    def fitting(self, most: int) -> str:
        """The text with as many causes as fit into `most` characters; cut if none does.

        One outside of the basic plane counts twice, as it does for some chats.
        """
        for shown in range(len(self.blocks), 0, -1):
            text = self._body(shown)
            if _units(text) <= most:
                return text
        text = self._body(1)
        while text and _units(text) >= most:
            text = text[: min(most - 1, len(text) - 1)]
        return f"{text}…"

    def _body(self, shown: int) -> str:
        more = self.count - shown
        rest = (f"and {more} more",) if more else ()
        return "\n\n".join((*self.blocks[:shown], *rest, self.footer))


def written(
    decision: RuleDecision,
    project: str,
    issues: Mapping[str, Issue],
    dashboard_url: str,
    sources: Mapping[str, IssueSource] = {},
) -> ReadableMessage:
    """The message. `issues` are those that are known, by their ids, and `sources` what source maps say of them."""
    causes = decision.causes
    base = dashboard_url.rstrip("/")
    first = causes[0]
    texts = [
        (cause, _text(decision, cause, issues.get(cause.issue), sources.get(cause.issue, NO_SOURCE)))
        for cause in causes[:MAX_LISTED]
    ]
    heading = _heading(*texts[0]) if len(causes) == 1 else f"{len(causes)} notifications"
    data = WebhookMessage(
        decision.id,
        Named(first.project_id, project),
        Named(decision.rule.id, decision.rule.name),
        len(causes),
        [_data(cause, text, base) for cause, text in texts],
    )
    return ReadableMessage(
        id=decision.id,
        to=decision.rule.to,
        title=f"[{escape_markup(project, 60)}] {heading}",
        blocks=tuple(_block(cause, text, base) for cause, text in texts),
        count=len(causes),
        footer=f"Sent by the rule “{escape_markup(decision.rule.name, 100)}”.",
        data=to_builtins(data),
    )


def escape_markup(text: str, most: int = _TEXT_CHARS) -> str:
    """Text of an event on one line, so that no chat takes it for a mention, a link or markup.

    Anyone can send events.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    line = _EMPHASIS.sub(lambda found: "\u02cd" * len(found[0]), line.translate(_LOOKALIKES))
    line = _ACTIVE.sub(rf"\g<0>{_JOINER}", line)
    if _LINE_START.match(line):
        line = _JOINER + line
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class _Text(Struct, frozen=True):
    """The details of an issue in a message."""

    error_type: str
    message: str
    culprit: str
    status: str
    events: int
    users: int
    assignee: str
    trend: Sequence[int] = ()
    source: str = ""

    @property
    def title(self) -> str:
        return issue_title(self.error_type, self.message)


def _text(decision: RuleDecision, cause: Cause, issue: Issue | None, source: IssueSource) -> _Text | None:
    """The details of the issue, else of the cause, which has no texts of events but the error's type."""
    if decision.rule.without_content:
        return None
    if issue is None:
        known = cause.subject
        return _Text(known.error_type, "", "", known.status, known.events, known.users, known.assignee)
    return _Text(
        issue.error_type,
        issue.message,
        source.culprit or issue.culprit,
        issue.status,
        issue.total_events,
        issue.total_users,
        issue.assignee or "",
        issue.trend,
        source.line,
    )


def _heading(cause: Cause, text: _Text | None) -> str:
    kind = KINDS[cause.kind].format(escape_markup(cause.value, 60))
    if text is None or not text.title:
        return f"{kind}: issue {cause.issue}"
    return f"{kind}: {escape_markup(text.title, _TITLE_CHARS - len(kind))}"


def _block(cause: Cause, text: _Text | None, base: str) -> str:
    lines = [KINDS[cause.kind].format(escape_markup(cause.value, 100))]
    if text is not None:
        if text.title:
            lines.append(escape_markup(text.title))
        if text.culprit:
            lines.append(f"in {escape_markup(text.culprit)}")
        if text.source:
            lines.append(f"source: {escape_markup(text.source)}")
        subject = cause.subject
        where = [escape_markup(name, 100) for name in (subject.release, subject.environment) if name]
        lines.append(" · ".join([*where, _counted(text.events, "event"), _counted(text.users, "user")]))
        if text.assignee:
            lines.append(f"assigned to {escape_markup(text.assignee, 100)}")
        if any(text.trend):
            lines.append(f"last 24 hours {sparkline(text.trend)}")
    lines.append(f"Why: {_REASONS[cause.kind].format(escape_markup(cause.value, 100))}.")
    if base:
        lines += [_link(cause, base), f"Snooze: {_link(cause, base)}/snooze"]
    return "\n".join(lines)


def _link(cause: Cause, base: str) -> str:
    return f"{base}/issues/{cause.issue}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sparkline(counts: Sequence[int]) -> str:
    """Counts as a line of bars: the highest is the largest count, the lowest is 0; empty for none."""
    most = max(counts, default=0) or 1
    # Rounded up: a single event is seen among very many.
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)


def _data(cause: Cause, text: _Text | None, base: str) -> MessageCause:
    url = _link(cause, base) if base else ""
    issue = MessageIssue(cause.issue, url, f"{url}/snooze" if base else "")
    if text is not None:
        issue = replace(
            issue,
            title=text.title,
            error_type=text.error_type,
            message=text.message,
            culprit=text.culprit,
            source=text.source or UNSET,
            status=text.status,
            release=cause.subject.release,
            environment=cause.subject.environment,
            total_events=text.events,
            total_users=text.users,
            assignee=text.assignee,
        )
    return MessageCause(cause.id, cause.kind, cause.at, cause.value, url, issue)
