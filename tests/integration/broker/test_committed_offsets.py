"""A real broker's answer about a group without commits: each partition, with -1."""

from contextlib import suppress

from aiokafka import TopicPartition
from aiokafka.errors import GroupCoordinatorNotAvailableError
from aiokafka.structs import OffsetAndMetadata

from broker.client import committed_offsets, open_admin
from schemas.ids import new_token
from schemas.settings import KafkaSettings
from tests.eventually import eventually


async def test_an_unknown_group_has_committed_no_partition(
    kafka_bootstrap: str,
) -> None:
    partitions = [TopicPartition(f"never-made-{new_token()}", partition) for partition in range(3)]
    found: dict[TopicPartition, OffsetAndMetadata] = {}

    async def answered() -> bool:
        async with open_admin(KafkaSettings(kafka_bootstrap=kafka_bootstrap)) as admin:
            # The broker's topic of groups is made with the first question.
            with suppress(GroupCoordinatorNotAvailableError):
                found.update(await committed_offsets(admin, f"never-joined-{new_token()}", partitions))
                return True
        return False

    await eventually(answered)
    assert {partition: one.offset for partition, one in found.items()} == dict.fromkeys(partitions, -1)
