"""The trial of a rule before it is offered after a merge.

A rule that catches another issue, or that can't be tried whole, is not offered.
"""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import Raw

from control.project_edits import create
from dashboard.dependencies import State
from dashboard.rule_trial import catches_only
from dashboard.trial_queue import TrialQueue
from schemas.ids import hex64
from schemas.projects import GroupingRule
from schemas.read_api import Sample
from storage.errors import StorageUnavailable
from storage.read.events.event_calls import SampleEvents

PROJECT = create("shop", now_ms=1_760_000_000_000)
RULE = GroupingRule("pay", "type:PayError", ("pay",))
OWN, OTHER = 7, 8


class Stored:
    """Answers with the newest events, as (type, issue)."""

    def __init__(self, *events: tuple[str, int], is_down: bool = False) -> None:
        self.events = events
        self.is_down = is_down

    async def read(self, call: SampleEvents) -> list[Sample]:
        """The sample of a query for the events that the rule matches."""
        assert call.query == RULE.match
        if self.is_down:
            raise StorageUnavailable("ClickHouse took too long")
        return [
            Sample(
                event=Raw(json.dumps({"error": {"type": kind, "message": "no", "stack": []}}).encode()),
                issue_id=hex64(issue),
                fingerprint=hex64(issue),
                sdk="js/1",
                received_ms=1,
            )
            for kind, issue in self.events
        ]


@pytest.fixture
def trials() -> Iterator[TrialQueue]:
    made = TrialQueue()
    yield made
    made.stop_thread()


async def is_offered(stored: Stored, trials: TrialQueue) -> bool:
    state = cast(State, SimpleNamespace(dependencies=SimpleNamespace(reader=stored), trials=trials))
    return await catches_only(state, PROJECT, RULE, OWN)


async def test_a_rule_that_catches_the_merged_issue_alone_is_offered(trials: TrialQueue) -> None:
    assert await is_offered(Stored(("PayError", OWN), ("PayError", OWN)), trials)


async def test_a_rule_that_catches_another_issue_too_is_not_offered(trials: TrialQueue) -> None:
    assert not await is_offered(Stored(("PayError", OWN), ("PayError", OTHER)), trials)


async def test_a_rule_that_catches_nothing_is_not_offered(trials: TrialQueue) -> None:
    assert not await is_offered(Stored(), trials)
    assert not await is_offered(Stored(("CartError", OWN)), trials)


async def test_without_a_whole_trial_nothing_is_offered(trials: TrialQueue) -> None:
    exact = Stored(("PayError", OWN))
    assert not await is_offered(Stored(is_down=True), trials)
    for short in (TrialQueue(seconds=0), TrialQueue(max_waiting=-1)):
        assert not await is_offered(exact, short)
        short.stop_thread()
