"""A test of rules: past records, folded as if the rules had been there from the beginning. Pure."""

from collections.abc import Iterable, Sequence

from notify.notification_fold import Notifications
from notify.rule_queue import RuleDecision
from schemas.notifications import CauseRecord, NotificationRecord, NotificationRule, RulesRecord, TimeRecord


def preview(
    records: Iterable[NotificationRecord], project: str, rules: Sequence[NotificationRule], now_ms: int
) -> list[RuleDecision]:
    """The decisions by now, in order. `records` are those of `notifications`, from any time on."""
    state = Notifications()
    decisions = state.apply_record(RulesRecord(0, project, tuple(rules)))
    for record in records:
        if isinstance(record, CauseRecord) and record.cause.project_id == project:
            decisions += state.apply_record(record)
        else:
            decisions += state.apply_record(TimeRecord(record.at_ms))
    return decisions + state.apply_record(TimeRecord(now_ms))
