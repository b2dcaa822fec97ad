"""The setting of the channels, and the examples of the documentation."""

import re
from pathlib import Path

import msgspec
import pytest

from dashboard.api.notifications import NotificationRulesInput
from notify.channels import channel_settings
from notify.rule_input import problems
from schemas.errors import BadSetting

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
