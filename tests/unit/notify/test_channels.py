"""The setting of the channels, and the examples of the documentation."""

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import apprise
import msgspec
import pytest
from msgspec.structs import replace

from dashboard.api.notifications_api import NotificationRulesInput
from notify.channels import channel_settings, open_channels
from notify.readable_message import written
from notify.rule_input import problems
from notify.rule_queue import RuleDecision
from schemas.errors import BadSetting
from schemas.notifications import CAUSES, NotificationRule
from tests.unit.cli.test_issue_text import ISSUE
from tests.unit.notify.histories import START, cause

PAGE = (Path(__file__).parents[3] / "docs" / "operate" / "notify.md").read_text(encoding="utf-8")
CHANNELS, RULES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_of_the_page_are_valid() -> None:
    assert set(channel_settings(CHANNELS)) == {"team-mail", "shop-chat", "incidents", "pager"}
    rules = msgspec.json.decode(RULES, type=NotificationRulesInput).rules
    assert problems(rules) == []
    assert {name for rule in rules for name in rule.channels} <= set(channel_settings(CHANNELS))


def test_without_the_setting_there_are_no_channels() -> None:
    assert channel_settings("") == channel_settings(" ") == {}


@pytest.mark.parametrize(
    "text",
    [
        "mailto://x",
        "[]",
        '{"a": {}}',
        '{"a": {"webhook": "ftp://x/y"}}',
        '{"a": {"webhook": "https://"}}',
        '{"a": {"webhook": "https://x", "apprise": "json://x"}}',
        '{"a": {"alertmanager": "http://x", "secret": "s"}}',
        '{"a": {"apprise": "nonsense"}}',
        '{"a": {"webhooks": "https://x"}}',
    ],
)
def test_a_faulty_channel_is_refused_in_one_line_without_its_address(text: str) -> None:
    with pytest.raises(BadSetting) as refused:
        channel_settings(text)
    message = str(refused.value)
    assert message.startswith("SVC_NOTIFY_CHANNELS: ")
    assert "\n" not in message
    assert "//x" not in message


@pytest.mark.parametrize(
    ("url", "most"),
    [
        ("discord://123456789/abcdefghijkl", 2000),
        ("tgram://123456789:abcdefg_hijklmnop/12345/", 4096),
        (f"pover://{'u' * 30}@{'t' * 30}", 1024),
    ],
)
async def test_a_digest_fits_into_one_request_of_a_chat(
    url: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []

    def notify(_sender: apprise.Apprise, **given: Any) -> bool:
        sent.append(given)
        return True

    monkeypatch.setattr(apprise.Apprise, "notify", notify)
    causes = tuple(replace(cause(number), issue=ISSUE.id) for number in range(20))
    rule = NotificationRule("a" * 16, "all", CAUSES, ("one",))
    long = replace(ISSUE, message="long " * 200)
    message = written(RuleDecision(rule, causes, START), "shop", {ISSUE.id: long}, "https://svc.example.com")
    async with aiohttp.ClientSession() as session:
        await open_channels(channel_settings(json.dumps({"one": {"apprise": url}})), session)["one"].send(
            message
        )
    (given,) = sent
    assert len(message.body) > most
    assert len(given["title"]) + len(given["body"]) <= most + 250 * url.startswith("pover")
    assert " more\n\n" in given["body"]
