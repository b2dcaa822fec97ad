"""Two processes of one name."""

import logging
from collections.abc import Mapping, Sequence

import pytest

from broker.errors import KafkaError
from broker.member_name import MemberName
from tests.eventually import eventually

SENTENCE = "another process is in the group writers with NAME=0 too"


class World:
    """A name, the broker's answers about it (the last one repeats), and a clock that tests set."""

    def __init__(self, *answers: Mapping[str, str], session_seconds: float = 10.0) -> None:
        self.now = 100.0
        self.answers: Sequence[Mapping[str, str]] = answers
        self.name = MemberName("writers", "NAME=0", session_seconds, self.holders, lambda: self.now)

    async def holders(self) -> Mapping[str, str]:
        if not self.answers:
            raise KafkaError
        first, *rest = self.answers
        self.answers = rest or [first]
        return first

    def joined(self, ids: str, pause: float) -> MemberName:
        for each in ids:
            self.name.joined(each)
            self.now += pause
        return self.name


async def test_a_name_that_is_taken_again_and_again_within_a_session_is_used_twice() -> None:
    world = World()
    part = world.joined("abc", 1.0).part()
    assert not part.ok
    assert SENTENCE in part.detail
    world.now += 10.0
    assert world.name.part().ok


async def test_sessions_that_expire_and_rebalances_are_not_taken_for_it() -> None:
    assert World().joined("abcdef", 10.0).part().ok
    assert World().joined("aaaaaa", 0.1).part().ok


async def test_a_client_that_is_replaced_again_and_again_has_its_name_alone() -> None:
    world = World()
    world.joined("ab", 1.0)
    for member_id in "cde":
        world.name.begin()
        world.name.joined(member_id)
    assert world.name.part().ok


async def test_the_other_process_is_named_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"c": "svc at 10.0.0.7"}, {"x": "svc at 10.0.0.8"})
    with caplog.at_level(logging.INFO, "broker.member_name"):
        world.joined("abcde", 1.0)
        await eventually(lambda: caplog.messages)
        assert caplog.messages == [f"{SENTENCE} (svc at 10.0.0.8): give each a different name"]
        assert "10.0.0.8" in world.name.part().detail
        world.now += 60.0
        world.joined("fgh", 1.0)
        await eventually(lambda: len(caplog.messages) == 2)


async def test_an_id_that_the_client_is_about_to_learn_is_no_other_process() -> None:
    world = World({"a": "svc at 10.0.0.7"}, session_seconds=1.5)
    world.joined("a", 1.0)
    assert await world.name.other() == ""
    world = World({"b": "svc at 10.0.0.7"}, {}, session_seconds=1.5)
    assert await world.name.other() == ""


async def test_a_broker_that_does_not_tell_leaves_the_other_unnamed() -> None:
    assert await World().name.other() == ""
