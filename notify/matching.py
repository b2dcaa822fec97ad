"""Whether a rule chooses a cause. Pure."""

from functools import lru_cache

from query.evaluate import Predicate, predicate
from query.event_view import EventView, IssueView
from query.parse import parse
from schemas.errors import QueryError
from schemas.notifications import Cause, NotificationRule
from schemas.times import parse_iso


def chooses(rule: NotificationRule, cause: Cause) -> bool:
    """Whether the rule sends the cause. Causes of issues that are resolved or ignored are never sent."""
    if not rule.enabled or cause.kind not in rule.causes or cause.subject.status != "open":
        return False
    if cause.kind == "usersReached" and int(cause.value) < rule.users:
        return False
    return _compiled(rule.query)(_view(cause), parse_iso(cause.at))


@lru_cache(maxsize=1024)
def _compiled(query: str) -> Predicate:
    try:
        return predicate(parse(query))
    except QueryError:
        # Rules are checked when they are stored, by the language of then.
        return lambda _view, _now_ms: False


def _view(cause: Cause) -> EventView:
    subject = cause.subject
    return EventView(
        type=subject.error_type,
        platform=subject.platform,
        release=subject.release,
        environment=subject.environment,
        timestamp=parse_iso(cause.at),
        issue=IssueView(
            status=subject.status,
            regressed=subject.regressed,
            assignee=subject.assignee,
            first_release=subject.first_release,
            first_seen=subject.first_seen_ms,
            last_seen=subject.last_seen_ms,
            events=subject.events,
            users=subject.users,
            escalated=subject.escalated_ms,
        ),
    )
