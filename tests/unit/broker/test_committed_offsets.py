"""A coordinator that is still loading is not one that knows of no commit."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupLoadInProgressError, TopicAuthorizationFailedError
from aiokafka.structs import OffsetAndMetadata

from broker import client
from broker.client import committed_offsets

PARTITIONS = [TopicPartition("grouped", 0), TopicPartition("grouped", 1)]
WHOLE = {partition: OffsetAndMetadata(7, "") for partition in PARTITIONS}


class Admin:
    """Answers like a broker that was just started, then with the offsets."""

    def __init__(self, *answers: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._answers = list(answers)

    async def list_consumer_group_offsets(
        self,
        group: str,  # noqa: ARG002
        partitions: Sequence[TopicPartition],  # noqa: ARG002
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOADING_PAUSES_SECONDS", (0.0, 0.0, 0.0))


async def test_an_answer_without_the_partitions_is_asked_for_again() -> None:
    assert (
        await committed_offsets(Admin({}, {PARTITIONS[0]: WHOLE[PARTITIONS[0]]}, WHOLE), "writer", PARTITIONS)
        == WHOLE
    )


async def test_a_coordinator_that_goes_on_loading_is_an_error() -> None:
    with pytest.raises(GroupLoadInProgressError):
        await committed_offsets(Admin({}), "writer", PARTITIONS)


class Denied:
    """Answers a real client like a broker that doesn't let it see the topic."""

    list_consumer_group_offsets = AIOKafkaAdminClient.list_consumer_group_offsets

    async def find_coordinator(self, _group: str) -> int:
        return 0

    async def _send_request(self, _request: Any, _node: int) -> Any:
        partitions = [(tp.partition, -1, "", TopicAuthorizationFailedError.errno) for tp in PARTITIONS]
        return SimpleNamespace(error_code=0, topics=[("grouped", partitions)])


async def test_a_right_that_is_missing_is_an_error_that_says_so() -> None:
    with pytest.raises(TopicAuthorizationFailedError, match="grouped"):
        await committed_offsets(Denied(), "writer", PARTITIONS)
