"""The edge's look at unknown fields: rare, and without text that may be a person's."""

import json
from pathlib import Path

import pytest

from edge.delivery.outcomes import OutcomeReporter
from edge.metrics import EdgeMetrics
from edge.unknown_fields import UnknownFieldSampler, reason_of_field
from schemas.issues import UNKNOWN_FIELD, decode_outcomes
from schemas.unknown_fields import UnknownField
from tests.edge_events import encoded
from tests.unit.edge.delivery.memory_sink import MemorySink


class Looks:
    """A sampler with a clock that is set."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.metrics = EdgeMetrics()
        self.sink = MemorySink()
        self.outcomes = OutcomeReporter(self.sink, Path("never written"))
        self.sampler = UnknownFieldSampler(self.metrics, self.outcomes, lambda: self.time)

    def look(self, event: bytes, project: str = "1", sdk: str = "svc-js/1.0") -> None:
        self.sampler.look(project, sdk, event)

    async def reported(self) -> dict[tuple[str, str, str], int]:
        """The outcomes: by project, SDK and reason."""
        await self.outcomes.flush()
        found = [one for record in self.sink.records for one in decode_outcomes(record.value)]
        assert {one.outcome for one in found} <= {UNKNOWN_FIELD}
        return {(one.project_id, one.sdk, one.reason): one.count for one in found}

    def counted(self) -> dict[tuple[str, str, str], float]:
        (family,) = self.metrics.unknown_fields.collect()
        return {
            (sample.labels["project"], sample.labels["sdk"], sample.labels["nearest"]): sample.value
            for sample in family.samples
        }


def test_fields_are_counted_by_the_nearest_known_and_never_by_what_was_typed() -> None:
    looks = Looks()
    looks.look(encoded(tag={}, secret=1, user={"email": "a@b.c", "ids": 1}, error={"massage": "m"}))
    assert looks.counted() == {
        ("1", "svc-js", name): 1 for name in ("tags", "other", "user.other", "user.id", "error.message")
    }
    assert not any(typed in looks.metrics.page() for typed in (b"secret", b"email", b"ids", b"massage"))


def test_an_sdk_of_a_project_has_one_look_a_minute() -> None:
    looks, wrong = Looks(), encoded(tag={})
    for sdk in ("svc-js/1.0", "svc-js/2.0", "svc-ios/1.0"):
        looks.look(wrong, sdk=sdk)
    looks.look(wrong, project="2")
    looks.time += 59.9
    looks.look(wrong)
    once = {("1", "svc-js", "tags"): 1, ("1", "svc-ios", "tags"): 1, ("2", "svc-js", "tags"): 1}
    assert looks.counted() == once
    looks.time += 0.2
    looks.look(wrong)
    assert looks.counted() == once | {("1", "svc-js", "tags"): 2}


def test_a_right_event_takes_the_look_of_its_minute() -> None:
    looks = Looks()
    looks.look(encoded())
    looks.look(encoded(tag={}))
    assert looks.counted() == {}


def test_a_large_event_takes_no_look() -> None:
    looks = Looks()
    looks.look(json.dumps({"tag": "x" * 65_536}).encode())
    assert looks.counted() == {}
    looks.look(encoded(tag={}))
    assert looks.counted() == {("1", "svc-js", "tags"): 1}


def test_invented_sdks_share_one_look() -> None:
    looks = Looks()
    for number in range(300):
        looks.look(encoded(tag={}), sdk=f"sdk{number}/1")
    counted = looks.counted()
    assert len(counted) == 101
    assert counted["1", "other", "tags"] == 1


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (UnknownField("", "tag", "tags"), "tag/tags"),
        (UnknownField("user.", "Ids", "id"), "user.Ids/user.id"),
        (UnknownField("device.", "os-version", "osVersion"), "device.os-version/device.osVersion"),
        (UnknownField("", "secret", ""), "other"),
        (UnknownField("user.", "anna@example.com", ""), "user.other"),
        (UnknownField("", "user17", "user"), "other"),
        (UnknownField("", "ta/gs", "tags"), "other"),
        (UnknownField("", "täg", "tags"), "other"),
    ],
)
def test_a_field_is_named_only_where_it_is_probably_a_misspelt_one(field: UnknownField, reason: str) -> None:
    assert reason_of_field(field) == reason


async def test_outcomes_name_the_field_the_nearest_and_the_sdk_with_its_version() -> None:
    looks = Looks()
    looks.look(encoded(tag={}, secret=1, user={"email": "a@b.c", "ids": 1}))
    reasons = ("tag/tags", "other", "user.other", "user.ids/user.id")
    assert await looks.reported() == {("1", "svc-js/1.0", reason): 1 for reason in reasons}


async def test_names_of_a_project_are_bounded_and_use_up_no_other_ones() -> None:
    looks = Looks()
    for number in range(150):
        name = "tags" + chr(ord("a") + number // 26) + chr(ord("a") + number % 26)
        looks.look(encoded(**{name: {}}))
        looks.time += 61
    looks.look(encoded(tag={}), project="2")
    reported = await looks.reported()
    assert len(reported) == 102
    assert reported["1", "svc-js/1.0", "other"] == 50
    assert reported["2", "svc-js/1.0", "tag/tags"] == 1
