"""What an erasure waits for."""

from typing import Any

import pytest

from control import erasure
from control.operator_tools import OperatorTools
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from storage.maintain.erase.erase_user import UserReport

GROUPS = {
    "processors": [Topic.EVENTS, Topic.ISSUE_DELTAS],
    "writer": [Topic.GROUPED],
    "records": [Topic.ISSUES],
}
LISTED = UserReport(project_id="7", events=3, tables=[])


def test_issues_are_described_anew_once_the_counts_of_listed_events_are_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[Any] = []

    async def passed(_settings: object, groups: dict[str, list[Topic]], _seconds: float) -> None:
        steps.append(groups)

    def erase(*arguments: Any) -> UserReport:
        settle = arguments[4]
        steps.append("listed")
        settle()
        steps.append("deleted and described")
        return LISTED

    monkeypatch.setattr("control.operator_tools.passed", passed)
    monkeypatch.setattr("control.erasure._record", lambda *_: None)
    monkeypatch.setattr("control.erasure.of_project.begun", lambda *_: False)
    monkeypatch.setattr("control.erasure.of_user.preview", lambda *_: LISTED)
    monkeypatch.setattr("control.erasure.of_user.erase_user", erase)
    tools = OperatorTools(KafkaSettings(), GROUPS, (), 1.0, "me", lambda _: None)
    erasure.erase_user(tools, 7, "ann", lambda *_: True)
    # A processor commits its records of `events` once their counts are published.
    waited = {"processors": [Topic.EVENTS], "writer": [Topic.GROUPED]}
    assert steps == [waited, "listed", waited, "deleted and described"]
