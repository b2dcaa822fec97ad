"""A notification rule as a sentence."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dashboard.view.text import plural
from schemas.notifications import MOST_PER_HOUR, CauseKind, NotificationRule, QuietHours

_CAUSES: Final[dict[str, str]] = {
    "created": "new issues",
    "regressed": "regressions",
    "reopened": "issues that are no longer ignored",
    "seenInRelease": "first events in another release",
    "seenInEnvironment": "first events in another environment",
    "usersReached": "issues that reach more users",
    "escalated": "escalating issues",
}
CHOICES: Final[dict[CauseKind, tuple[str, str]]] = {
    "created": ("New issue", "its first event"),
    "regressed": ("Regression", "it was resolved and came back"),
    "escalated": ("Escalating", "far more events in an hour than before"),
    "reopened": ("No longer ignored", "its snooze has ended"),
    "usersReached": ("More users", "10, 20, 50 and so on have met it"),
    "seenInRelease": ("Another release", "its first event in that release"),
    "seenInEnvironment": ("Another environment", "its first event there"),
}
"""The causes in the order of a form, each in words with its meaning."""
WEEKDAYS: Final = {
    "mon": "Monday",
    "tue": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}


class RuleSentence(Struct, frozen=True):
    """`New issues and regressions`, where a query holds, → channels, and each of the further conditions."""

    causes: str
    query: str
    channels: str
    conditions: list[str]


def sentence_of(rule: NotificationRule) -> RuleSentence:
    """The rule in words."""
    causes = _listed([_cause(kind, rule.users) for kind in rule.causes])
    return RuleSentence(
        causes[:1].upper() + causes[1:], rule.query, _listed(rule.channels), list(_conditions(rule))
    )


def _cause(kind: str, users: int) -> str:
    if kind == "usersReached" and users:
        return f"issues that reach {plural(users, 'user')} or more"
    return _CAUSES[kind]


def _conditions(rule: NotificationRule) -> Iterator[str]:
    if rule.to:
        yield f"to {_listed(rule.to)}"
    if rule.digest_minutes:
        hours, rest = divmod(rule.digest_minutes, 60)
        span = plural(rule.digest_minutes, "minute") if rest else plural(hours, "hour")
        yield f"collected for {span}"
    if rule.most_per_hour != MOST_PER_HOUR:
        yield f"at most {rule.most_per_hour:,} an hour" if rule.most_per_hour else "any number an hour"
    if rule.quiet is not None:
        yield from _quiet(rule.quiet)
    if rule.without_content:
        yield "without text of events"


def _quiet(quiet: QuietHours) -> Iterator[str]:
    times = []
    if quiet.start != quiet.end:
        times.append(f"from {quiet.start} to {quiet.end}")
    if quiet.days:
        times.append(f"on {_listed([f'{WEEKDAYS[day]}s' for day in quiet.days])}")
    if times:
        yield f"not {' or '.join(times)} ({quiet.zone})"


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
