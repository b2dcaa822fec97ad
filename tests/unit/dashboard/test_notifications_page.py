"""The page of notifications: rules in words, typed, tested and saved; undelivered messages; Kafka unavailable."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from dashboard.view.notification_rules import sentence_of
from schemas.errors import ProjectsUnavailable
from schemas.notifications import (
    CAUSES,
    ChannelsRecord,
    ChannelTestRecord,
    DeliveryRecord,
    NotificationRule,
    QuietHours,
    RulesRecord,
)
from schemas.times import DAY_MS, HOUR_MS, iso
from tests.unit.dashboard.site import NOW, Site, running_site
from tests.unit.dashboard.test_notifications_api import happened

RULE = NotificationRule("a" * 16, "prod", ("created", "regressed"), ("shop-chat",), "environment:prod")
TYPED = {
    "name": "prod",
    "query": "environment:prod",
    "causes": ["created", "regressed"],
    "channels": ["shop-chat"],
    "enabled": "yes",
}


async def opened(site: Site) -> str:
    answer = await site.client.get(f"/projects/{site.project.id}/notifications")
    assert answer.status == 200
    return await answer.text()


async def post(site: Site, do: str, *rules: dict[str, Any]) -> tuple[int, str]:
    """Status and page after the form was sent with these rules."""
    fields = [("csrf", await site.csrf())]
    for number, rule in enumerate(rules):
        fields.append(("rule", f"r{number}"))
        for name, value in rule.items():
            values = value if isinstance(value, list) else [value]
            fields += [(f"r{number}.{name}", one) for one in values]
    answer = await site.client.post(f"/projects/{site.project.id}/notifications", data=[*fields, ("do", do)])
    return answer.status, await answer.text()


def stored(site: Site) -> tuple[NotificationRule, ...]:
    return site.projects.all()[0].notification_rules


async def store(site: Site, *rules: NotificationRule) -> None:
    await site.projects.edit(site.project.number, lambda old: replace(old, notification_rules=tuple(rules)))


def text_of(page: str) -> str:
    """The text of the page, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (RULE, "New issues and regressions where environment:prod → shop-chat"),
        (
            NotificationRule("b" * 16, "x", ("usersReached",), ("mail",), users=100, to=("a@b.de", "c@d.de")),
            "Issues that reach 100 users or more → mail, to a@b.de and c@d.de",
        ),
        (
            NotificationRule("b" * 16, "x", ("escalated",), ("a", "b"), digest_minutes=120, most_per_hour=20),
            "Escalating issues → a and b, collected for 2 hours, at most 20 an hour",
        ),
        (
            NotificationRule(
                "b" * 16,
                "x",
                ("created",),
                ("a",),
                digest_minutes=90,
                quiet=QuietHours("22:00", "07:00", "Europe/Berlin", ("sat", "sun")),
                without_content=True,
            ),
            "New issues → a, collected for 90 minutes, not from 22:00 to 07:00 or on Saturdays and Sundays"
            " (Europe/Berlin), without text of events",
        ),
        (
            NotificationRule("b" * 16, "x", ("created",), ("a",), quiet=QuietHours("00:00", "00:00")),
            "New issues → a",
        ),
    ],
)
async def test_a_rule_is_a_sentence(site: Site, rule: NotificationRule, words: str) -> None:
    await site.sign_in()
    await store(site, rule)
    page = await opened(site)
    assert f">{rule.name}<" in page
    (sentence,) = re.findall(r'<span class="rule-sentence">(.*?)</span></summary>', page, re.DOTALL)
    assert text_of(sentence) == words


def test_every_cause_has_words() -> None:
    sentences = {sentence_of(NotificationRule("", "", (kind,), ("a",))).causes for kind in CAUSES}
    assert len(sentences) == len(CAUSES)


async def test_a_typed_rule_is_saved_with_all_its_fields_and_stays_the_same_when_saved_again(
    site: Site,
) -> None:
    await site.sign_in()
    typed = TYPED | {
        "to": "a@b.de\r\n c@d.de \r\n",
        "digestMinutes": "60",
        "mostPerHour": "20",
        "users": "100",
        "quiet.start": "22:00",
        "quiet.end": "07:00",
        "quiet.zone": "Europe/Berlin",
        "quiet.days": ["sat", "sun"],
        "withoutContent": "yes",
    }
    del typed["enabled"]
    status, page = await post(site, "save", typed, {"causes": ["created"], "enabled": "yes"})
    assert status == 200
    assert "Saved." in page
    (rule,) = stored(site)
    assert rule == NotificationRule(
        rule.id,
        "prod",
        ("created", "regressed"),
        ("shop-chat",),
        "environment:prod",
        users=100,
        to=("a@b.de", "c@d.de"),
        digest_minutes=60,
        most_per_hour=20,
        quiet=QuietHours("22:00", "07:00", "Europe/Berlin", ("sat", "sun")),
        without_content=True,
        enabled=False,
    )
    await post(site, "save", typed | {"id": rule.id})
    assert stored(site) == (rule,)


async def test_days_alone_can_be_quiet(site: Site) -> None:
    await site.sign_in()
    await post(site, "save", TYPED | {"quiet.days": ["sun"]})
    assert stored(site)[0].quiet == QuietHours("00:00", "00:00", "UTC", ("sun",))


async def test_a_rule_is_deleted_when_it_is_marked(site: Site) -> None:
    await site.sign_in()
    other = NotificationRule("c" * 16, "other", ("created",), ("mail",))
    await store(site, RULE, other)
    kept = {"id": "c" * 16, "name": "other", "causes": "created", "channels": "mail", "enabled": "yes"}
    marked = TYPED | {"id": "a" * 16, "remove": "yes"}
    status, page = await post(site, "preview", marked, kept)
    assert status == 200
    assert "deleted when saved" in page
    assert stored(site) == (RULE, other)
    await post(site, "save", marked, kept)
    assert stored(site) == (other,)


async def test_every_fault_is_next_to_its_field_and_no_input_is_lost(site: Site) -> None:
    await site.sign_in()
    await store(site, RULE)
    faulty = {
        "query": "timeout",
        "channels": "a%b",
        "digestMinutes": "soon",
        "quiet.start": "25:00",
        "quiet.end": "07:00",
        "to": "kept@example.com",
        "enabled": "yes",
    }
    removed = {"name": "", "query": "x", "remove": "yes"}
    status, page = await post(site, "save", removed, TYPED, faulty)
    assert status == 400
    assert stored(site) == (RULE,)
    errors = {name: text_of(text) for name, text in re.findall(r'id="(r\d-[\w-]+)-error">(.*?)</span>', page)}
    assert errors == {
        "r2-name": "choose or enter something",
        "r2-causes": "choose or enter something",
        "r2-channels": "expected names of letters, digits and . _ - alone",
        "r2-query": "causes carry no text to search: use keys such as type, release, is",
        "r2-digestMinutes": "expected an integer",
        "r2-quiet-start": "expected a time such as 22:00",
    }
    for value in ("timeout", "a%b", "soon", "25:00", "07:00"):
        assert f'value="{value}"' in page
    assert ">kept@example.com</textarea>" in page


async def test_a_test_of_typed_rules_is_shown_and_not_saved(site: Site) -> None:
    await site.sign_in()
    site.log += [
        happened(1, 15 * 24, site.project.id),
        happened(2, 50, site.project.id),
        happened(3, 49, site.project.id, "test"),
        happened(4, 47, site.project.id),
    ]
    status, page = await post(site, "preview", TYPED)
    assert status == 200
    section = page[page.index('id="test"') : page.index('class="rules"')]
    assert "2 messages" in section
    assert re.findall(r'href="/issues/(\w+)"', section) == [f"{4:016x}", f"{2:016x}"]
    assert re.findall(r'<time datetime="([^"]+)"', section) == [
        iso(NOW - 47 * HOUR_MS),
        iso(NOW - 50 * HOUR_MS),
    ]
    assert "New issue" in section
    assert 'value="environment:prod"' in page
    assert "not saved" in page
    assert stored(site) == ()


async def test_only_differences_from_the_stored_rule_are_marked(site: Site) -> None:
    await site.sign_in()
    await store(site, RULE)
    same = TYPED | {"id": RULE.id, "causes": ["regressed", "created"]}
    assert "not saved" not in (await post(site, "preview", same))[1]
    assert "not saved" in (await post(site, "preview", same | {"mostPerHour": "1"}))[1]
    assert "not saved" in (await post(site, "preview", same | {"channels": "mail"}))[1]
    status, page = await post(site, "save", same, TYPED | {"query": "timeout"})
    assert status == 400
    assert page.count("not saved") == 1
    assert page.count('class="rule-sentence"') == 1


async def test_channels_are_chosen_from_the_known_ones_and_a_lost_one_is_kept(site: Site) -> None:
    await site.sign_in()
    assert "SVC_NOTIFY_CHANNELS" in await opened(site)
    site.log.append(ChannelsRecord(NOW - DAY_MS, ("hook", "mail")))
    await store(site, RULE)
    page = await opened(site)
    assert "SVC_NOTIFY_CHANNELS" not in page
    boxes = re.findall(r'name="r0.channels" value="([\w-]+)"( checked)?', page)
    assert boxes == [("hook", ""), ("mail", ""), ("shop-chat", " checked")]


async def test_undelivered_messages_are_listed_with_their_reasons(site: Site) -> None:
    await site.sign_in()
    assert "all messages were delivered" in await opened(site)
    rule = NotificationRule("b" * 16, "all", CAUSES, ("mail", "hook"))
    site.log += [
        RulesRecord(NOW - DAY_MS, site.project.id, (rule,)),
        happened(1, 5, site.project.id),
        DeliveryRecord(NOW - HOUR_MS, f"{rule.id}/hook/cause-1", attempts=9, error="answered <500>"),
        DeliveryRecord(
            NOW - HOUR_MS, f"{rule.id}/mail/cause-1", attempts=2, next_ms=NOW + HOUR_MS, error="no answer"
        ),
    ]
    page = await opened(site)
    rows = [
        [text_of(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr role=\"row\">(<td.*?)</tr>", page, re.DOTALL)
    ]
    assert sorted(row[:5] for row in rows) == [
        ["all", "hook", "9", "given up", "answered &lt;500&gt;"],
        ["all", "mail", "2", "in 1 h", "no answer"],
    ]


async def test_without_kafka_the_page_opens_and_keeps_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_site(has_log=False) as site:
        await site.sign_in()
        await store(site, RULE)
        page = await opened(site)
        assert "New issues and regressions" in page
        assert "This can't be read now" in page
        status, page = await post(site, "preview", TYPED | {"name": "typed"})
        assert status == 503
        assert "The test failed" in page
        assert 'value="typed"' in page

        async def refuse(*_: Any) -> None:
            raise ProjectsUnavailable

        monkeypatch.setattr(site.projects, "edit", refuse)
        status, page = await post(site, "save", TYPED | {"name": "typed"})
        assert status == 503
        assert "Not saved" in page
        assert 'value="typed"' in page
        assert stored(site) == (RULE,)


async def test_a_form_that_is_cut_off_changes_nothing(site: Site) -> None:
    await site.sign_in()
    await store(site, RULE)
    assert (await post(site, "save"))[0] == 400
    assert (await post(site, "", TYPED))[0] == 400
    assert stored(site) == (RULE,)


async def after_test(site: Site, page: str) -> str:
    """The page after its form sent a test message through the channel hook."""
    (key,) = re.findall(r'name="key" value="(\w+)"', page)
    form = {"csrf": await site.csrf(), "key": key, "channel": "hook", "to": "a@b.de"}
    answer = await site.client.post(f"/projects/{site.project.id}/notifications/test", data=form)
    assert answer.status == 200
    return await answer.text()


@pytest.mark.parametrize(
    ("delivered", "error", "words"),
    [(True, "", "took the test message"), (False, "answered <500>", "did not take the test message")],
)
async def test_a_channel_is_tested_and_the_page_says_what_became_of_it(
    site: Site, delivered: bool, error: str, words: str
) -> None:
    await site.sign_in()
    assert 'name="key"' not in await opened(site)
    site.log.append(ChannelsRecord(NOW - DAY_MS, ("hook", "mail")))
    page = await opened(site)
    assert "data-pending" in await after_test(site, page)
    record = site.log[-1]
    assert isinstance(record, ChannelTestRecord)
    assert (record.project_id, record.channel, record.to) == (site.project.id, "hook", ("a@b.de",))
    # A form that is sent twice asks for the same message.
    await after_test(site, page)
    assert site.log[-1] == record
    site.log.append(DeliveryRecord(NOW, f"test/hook/test-{record.id}", delivered, error=error))
    shown = await after_test(site, page)
    assert words in text_of(shown)
    assert ("Undelivered" in shown and "Test message" in shown) != delivered


async def test_a_channel_is_not_tested_without_kafka_or_with_half_a_form() -> None:
    async with running_site(has_log=False) as site:
        await site.sign_in()
        path, form = f"/projects/{site.project.id}/notifications/test", {"csrf": await site.csrf()}
        assert (await site.client.post(path, data=form | {"channel": "hook"})).status == 400
        assert (await site.client.post(path, data=form | {"channel": "hook", "key": "1"})).status == 503
