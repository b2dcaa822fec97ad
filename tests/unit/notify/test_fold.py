"""The fold of the log: decisions, outgoing messages, and the same decisions live and in a preview."""

import random

import pytest
from msgspec.structs import replace

from notify.notification_fold import Notifications, preview
from notify.rule_queue import RuleDecision
from schemas.notifications import (
    CAUSES,
    MOST_PER_HOUR,
    CauseRecord,
    ChannelsRecord,
    ChannelTestRecord,
    DeliveryRecord,
    NotificationRecord,
    NotificationRule,
    PositionRecord,
    QuietHours,
    RulesRecord,
    TimeRecord,
    decode_notification,
    encode_notification,
)
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, iso, parse_iso
from tests.long_forms import first_quick
from tests.unit.notify.histories import START, any_cause, any_rule, cause, times

RULE = NotificationRule("a" * 16, "all", CAUSES, ("hook",))


def recorded(number: int, at_ms: int, **more: object) -> CauseRecord:
    return CauseRecord(at_ms, cause(number, at_ms=at_ms, **more), 0, number)  # type: ignore[arg-type]


def folded(rule: NotificationRule, *records: NotificationRecord) -> tuple[Notifications, list[RuleDecision]]:
    state = Notifications()
    decisions = [
        one for record in (RulesRecord(START, "1", (rule,)), *records) for one in state.apply_record(record)
    ]
    return state, decisions


def sent(decisions: list[RuleDecision]) -> list[tuple[int, list[str]]]:
    """Times since the start, and the causes."""
    return [(one.at_ms - START, [each.id for each in one.causes]) for one in decisions]


def test_a_cause_is_sent_immediately_and_a_repeat_never() -> None:
    state, decisions = folded(RULE, recorded(1, START), recorded(1, START + 5), recorded(2, START + 9))
    assert sent(decisions) == [(0, ["cause-1"]), (9, ["cause-2"])]
    assert [one.id for one in decisions] == ["cause-1", "cause-2"]
    assert state.next_offsets == {0: 3}


def test_a_test_of_a_channel_is_sent_once_whatever_the_rules_and_the_outcome() -> None:
    request = ChannelTestRecord(START, "k", "1", "mail", ("a@example.com",))
    state, decisions = folded(replace(RULE, enabled=False), request, request)
    assert sent(decisions) == [(0, ["test-k"])]
    (message,) = state.outgoing.values()
    assert (message.channel, message.project_id, message.decision.rule.to) == ("mail", "1", request.to)
    state.apply_record(DeliveryRecord(START + 1, message.id, error="no"))
    assert state.apply_record(request) == []
    assert (list(state.outgoing), list(state.given_up)) == ([], [message.id])


def test_a_digest_waits_for_its_end_and_sends_all_together_under_one_id() -> None:
    rule = replace(RULE, digest_minutes=5)
    state, decisions = folded(rule, recorded(1, START), recorded(2, START + MINUTE_MS))
    assert decisions == []
    assert state.due_ms == START + 5 * MINUTE_MS
    late = state.apply_record(TimeRecord(START + 9 * MINUTE_MS))
    assert sent(late) == [(5 * MINUTE_MS, ["cause-1", "cause-2"])]
    assert late[0].id.startswith("digest-")
    assert state.due_ms is None


def test_a_cause_after_the_end_of_a_digest_belongs_to_the_next() -> None:
    rule = replace(RULE, digest_minutes=5)
    _, decisions = folded(
        rule, recorded(1, START), recorded(2, START + 6 * MINUTE_MS), TimeRecord(START + HOUR_MS)
    )
    assert sent(decisions) == [(5 * MINUTE_MS, ["cause-1"]), (11 * MINUTE_MS, ["cause-2"])]


def test_causes_beyond_the_hourly_limit_wait() -> None:
    rule = replace(RULE, most_per_hour=2)
    causes = [recorded(n, START + n * MINUTE_MS) for n in range(5)]
    _, decisions = folded(rule, *causes, TimeRecord(START + 3 * HOUR_MS))
    assert sent(decisions) == [
        (0, ["cause-0"]),
        (MINUTE_MS, ["cause-1"]),
        (HOUR_MS, ["cause-2", "cause-3", "cause-4"]),
    ]


def test_a_flood_is_sent_in_limited_messages_and_one_with_the_rest() -> None:
    causes = [recorded(n, START + n) for n in range(1000)]
    _, decisions = folded(RULE, *causes, TimeRecord(START + HOUR_MS))
    assert [len(decision.causes) for decision in decisions] == [*[1] * MOST_PER_HOUR, 1000 - MOST_PER_HOUR]


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-11-26T21:59:59Z", "2026-11-26T21:59:59Z"),
        ("2026-11-26T22:00:00Z", "2026-11-27T06:00:00Z"),
        ("2026-11-27T03:00:00Z", "2026-11-27T06:00:00Z"),
        ("2026-11-27T23:30:00Z", "2026-11-30T06:00:00Z"),
        ("2026-11-28T12:00:00Z", "2026-11-30T06:00:00Z"),
    ],
)
def test_quiet_hours_end_by_the_clock_of_their_zone_and_whole_days_join_them(at: str, until: str) -> None:
    quiet = QuietHours("23:00", "07:00", "Europe/Berlin", ("sat", "sun"))
    moment = parse_iso(at)
    state, decisions = folded(replace(RULE, quiet=quiet), CauseRecord(moment, cause(1, at_ms=moment), 0, 1))
    decisions += state.apply_record(TimeRecord(moment + 9 * DAY_MS))
    assert [iso(one.at_ms) for one in decisions] == [until.replace("Z", ".000Z")]


def test_quiet_hours_follow_a_change_of_the_clock() -> None:
    quiet = QuietHours("22:00", "07:00", "Europe/Berlin")
    moment = parse_iso("2027-03-27T22:00:00Z")
    state, _ = folded(replace(RULE, quiet=quiet), CauseRecord(moment, cause(1, at_ms=moment), 0, 1))
    assert state.due_ms == parse_iso("2027-03-28T05:00:00Z")


def test_clocks_that_go_back_are_not_followed() -> None:
    rule = replace(RULE, digest_minutes=5)
    _, decisions = folded(
        rule,
        recorded(1, START),
        TimeRecord(START + HOUR_MS),
        recorded(2, START - DAY_MS),
        TimeRecord(START + 2 * HOUR_MS),
    )
    assert sent(decisions) == [
        (5 * MINUTE_MS, ["cause-1"]),
        (HOUR_MS + 5 * MINUTE_MS, ["cause-2"]),
    ]


def test_a_message_is_outgoing_until_it_is_delivered_or_given_up() -> None:
    rule = replace(RULE, channels=("hook", "mail"))
    state, _ = folded(rule, recorded(1, START))
    hook, mail = f"{RULE.id}/hook/cause-1", f"{RULE.id}/mail/cause-1"
    assert set(state.outgoing) == {hook, mail}
    state.apply_record(DeliveryRecord(START, hook, delivered=True))
    state.apply_record(DeliveryRecord(START, mail, attempts=1, next_ms=START + 1000, error="no answer"))
    assert (set(state.outgoing), state.outgoing[mail].attempts) == ({mail}, 1)
    state.apply_record(DeliveryRecord(START, mail, attempts=9, error="no answer"))
    assert (set(state.outgoing), set(state.given_up)) == (set(), {mail})
    assert state.given_up[mail].error == "no answer"


def test_a_changed_rule_keeps_waiting_causes_and_a_removed_or_disabled_one_drops_them() -> None:
    rule = replace(RULE, digest_minutes=60)
    for changed, expected in (
        ((replace(rule, digest_minutes=10),), [(10 * MINUTE_MS, ["cause-1"])]),
        ((), []),
        ((replace(rule, enabled=False),), []),
    ):
        state, _ = folded(rule, recorded(1, START))
        later: list[NotificationRecord] = [RulesRecord(START + 1, "1", changed), TimeRecord(START + DAY_MS)]
        assert sent([one for record in later for one in state.apply_record(record)]) == expected


def test_a_log_whose_beginning_has_expired_decides_as_before() -> None:
    rule = replace(RULE, digest_minutes=600)
    whole, log = Notifications(), list[NotificationRecord]()

    def append(record: NotificationRecord) -> None:
        log.append(record)
        whole.apply_record(record)

    for day in range(45):
        now = START + day * DAY_MS
        for missing in whole.missing({"1": (rule,), "2": ()}, ("hook",), now):
            append(missing)
        append(recorded(day, now + HOUR_MS))
    stored = [record for record in log if record.at_ms >= START + 15 * DAY_MS]
    late = Notifications()
    for record in stored:
        late.apply_record(record)
    assert late.channels == whole.channels == ("hook",)
    assert late.due_ms == whole.due_ms is not None
    assert late.outgoing.keys() == {name for name in whole.outgoing if int(name.rpartition("-")[2]) >= 15}
    assert len(late.outgoing) == 29


def test_rules_and_channels_are_written_where_they_differ_and_once_a_day() -> None:
    state, _ = folded(RULE, ChannelsRecord(START, ("hook",)))
    rules, channels, later = {"1": (RULE,), "2": ()}, ("hook",), START + DAY_MS
    assert state.missing(rules, channels, later - 1) == []
    assert state.missing(rules, channels, later) == [
        ChannelsRecord(later, channels),
        RulesRecord(later, "1", (RULE,)),
    ]
    assert state.missing({}, channels, START) == [RulesRecord(START, "1", ())]
    assert state.missing(rules | {"3": (RULE,)}, (), START) == [
        ChannelsRecord(START, ()),
        RulesRecord(START, "3", (RULE,)),
    ]


def test_positions_only_grow() -> None:
    state = Notifications()
    for record in (PositionRecord(1, {0: 5, 1: 2}), PositionRecord(2, {0: 3}), recorded(9, 3)):
        state.apply_record(record)
    assert state.next_offsets == {0: 10, 1: 2}


def live(
    luck: random.Random, rules: tuple[NotificationRule, ...], many: int, *, jumps: bool
) -> tuple[list[NotificationRecord], list[RuleDecision], int]:
    """A process's log with its ticks, late and early, with repeats and a clock that jumps back; and its decisions."""
    state, log, decisions = Notifications(), list[NotificationRecord](), list[RuleDecision]()

    def append(record: NotificationRecord) -> None:
        log.append(decode_notification(encode_notification(record)))
        decisions.extend(state.apply_record(log[-1]))

    append(RulesRecord(START, "1", rules))
    now = START
    for number, at_ms in enumerate(times(luck, many)):
        # The process looks at the clock now and then, and may be down for long.
        while luck.random() < 0.8 and state.due_ms is not None and state.due_ms <= at_ms:
            append(TimeRecord(max(state.due_ms, min(at_ms, state.due_ms + luck.randrange(1 + HOUR_MS)))))
        now = at_ms
        clock = at_ms - (luck.randrange(HOUR_MS) if jumps and luck.random() < 0.05 else 0)
        append(CauseRecord(clock, any_cause(luck, number, at_ms), 0, number))
        if luck.random() < 0.1:
            append(luck.choice([record for record in log if isinstance(record, CauseRecord)]))
        if luck.random() < 0.1:
            append(DeliveryRecord(at_ms, "x"))
    append(TimeRecord(now + 10 * DAY_MS))
    return log, decisions, now + 10 * DAY_MS


@pytest.mark.parametrize("seeds", first_quick([range(30), range(100)]))
def test_a_preview_decides_as_a_live_process_for_hundreds_of_rules(seeds: range) -> None:
    decided = 0
    for seed in seeds:
        luck = random.Random(seed)
        rules = tuple(any_rule(luck, number) for number in range(4))
        jumps = seed % 2 == 0
        log, decisions, now = live(luck, rules, 40, jumps=jumps)
        for rule in rules:
            expected = [one for one in decisions if one.rule.id == rule.id]
            assert preview(log, "1", (rule,), now) == expected
            if not jumps:
                # While clocks go on, causes alone say when it is.
                causes = [record for record in log if isinstance(record, CauseRecord)]
                assert preview(causes, "1", (rule,), now) == expected
            decided += len(expected)
    assert decided > 10 * len(seeds)


def test_each_cause_is_in_one_message_of_a_rule() -> None:
    for seed in range(100):
        luck = random.Random(seed)
        _, decisions, _ = live(luck, tuple(any_rule(luck, number) for number in range(3)), 60, jumps=True)
        pairs = [(one.rule.id, each.id) for one in decisions for each in one.causes]
        assert len(pairs) == len(set(pairs))
        ids = [(one.rule.id, one.id) for one in decisions]
        assert len(ids) == len(set(ids))
