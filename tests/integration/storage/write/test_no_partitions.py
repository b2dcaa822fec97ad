"""Writers that get nothing from their group, or not for long."""

import asyncio
import json
from collections.abc import Mapping

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from broker.consumer_lag import no_member_message
from broker.types import RebalanceListener, TopicPartition
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, Writer, ended, exactly, whole
from tests.integration.storage.write.test_writer_failures import lag


class Nothing(RoundRobinPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
    """The assignment of a group leader without rights on the topic."""

    @classmethod
    def assign(
        cls, _cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        return {member: ConsumerProtocolMemberAssignment(0, [], b"") for member in members}


class Joined(RebalanceListener, asyncio.Event):  # type: ignore[misc]  # aiokafka has no types
    """Set once the group has assigned something, be it nothing."""

    def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, _assigned: set[TopicPartition]) -> None:
        self.set()


def ready(writer: Writer, detail: str) -> bool:
    status, body = writer.get("readyz")
    return status == 200 and detail in json.loads(body)["parts"]["grouped"]["detail"]


async def test_a_writer_without_partitions_is_not_ready_while_some_have_no_writer(stage: Stage) -> None:
    await stage.produce(5, repeat=0)
    leader = AIOKafkaConsumer(
        bootstrap_servers=stage.settings.kafka_bootstrap,
        group_id=stage.settings.writer_group,
        enable_auto_commit=False,
        partition_assignment_strategy=(Nothing,),
    )
    await leader.start()
    joined = Joined()
    leader.subscribe([stage.topic], listener=joined)
    # Who joins first leads.
    await eventually(joined.is_set)
    writer = stage.writer()
    with ended(writer):
        message = no_member_message(stage.topic, {0: 5, 1: 0, 2: 0})
        await eventually(lambda: writer.health("grouped").get("detail") == message)
        assert writer.get("readyz")[0] == 503
        assert lag(writer, stage.topic) == 5
        await leader.stop()
        assert await whole(stage) == exactly(stage.total)
        await eventually(lambda: ready(writer, ""))


@pytest.mark.slow
async def test_a_writer_that_is_one_more_than_there_are_partitions_is_ready(stage: Stage) -> None:
    writers = [stage.writer(str(number)) for number in range(stage.settings.topic_partitions + 1)]
    with ended(*writers):
        await eventually(lambda: all(writer.get("readyz")[0] == 200 for writer in writers))
        await eventually(lambda: any(ready(writer, "no partition is left") for writer in writers))
