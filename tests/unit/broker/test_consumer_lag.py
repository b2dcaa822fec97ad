"""Which partitions the members of a group read."""

from aiokafka.coordinator.protocol import ConsumerProtocol

from broker.consumer_lag import assigned, no_member_message
from broker.types import TopicPartition


def member(*topics: tuple[str, list[int]]) -> dict[str, bytes]:
    return {"member_assignment": ConsumerProtocol.ASSIGNMENT(0, list(topics), b"").encode()}


def test_partitions_of_all_members_count_and_those_without_an_assignment_have_none() -> None:
    members = [member(("a", [0, 1]), ("b", [2])), member(), {"member_assignment": b""}]
    assert assigned(members) == {TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 2)}


def test_partitions_without_a_member_are_named_with_their_lag() -> None:
    assert no_member_message("a", {2: 7, 0: 1}) == (
        "no member of the group reads partitions 0, 2 of a, where 8 records wait"
    )
    assert no_member_message("a", {}) == ""
