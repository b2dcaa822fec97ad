"""The edge's look at unknown fields: rare, and without the clients' text."""

import json

from edge.metrics import EdgeMetrics
from edge.unknown_fields import UnknownFieldSampler
from tests.edge_events import encoded


class Looks:
    """A sampler with a clock that is set."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.metrics = EdgeMetrics()
        self.sampler = UnknownFieldSampler(self.metrics, lambda: self.time)

    def look(self, event: bytes, project: str = "1", sdk: str = "svc-js/1.0") -> None:
        self.sampler.look(project, sdk, event)

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
