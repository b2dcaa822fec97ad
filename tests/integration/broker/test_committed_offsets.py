"""What a real broker says of a group that has committed nothing: each partition, with -1."""

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError
from aiokafka.structs import OffsetAndMetadata

from broker.client import committed_offsets
from schemas.ids import new_token
from tests.eventually import eventually


async def test_a_group_that_nobody_knows_has_committed_nothing_of_each_partition(
    kafka_bootstrap: str,
) -> None:
    partitions = [TopicPartition(f"never-made-{new_token()}", partition) for partition in range(3)]
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    found: dict[TopicPartition, OffsetAndMetadata] = {}

    async def answered() -> bool:
        try:
            found.update(await committed_offsets(admin, f"never-joined-{new_token()}", partitions))
        except GroupCoordinatorNotAvailableError:
            # The broker's topic of groups is made with the first question.
            return False
        return True

    try:
        await eventually(answered)
    finally:
        await admin.close()
    assert {partition: one.offset for partition, one in found.items()} == dict.fromkeys(partitions, -1)
