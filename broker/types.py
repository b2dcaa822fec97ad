"""aiokafka's types under the names that the rest of the product uses."""

from typing import TypeAlias

from aiokafka import AIOKafkaConsumer as Consumer
from aiokafka import AIOKafkaProducer as Producer
from aiokafka import ConsumerRebalanceListener as RebalanceListener
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient as Admin
from aiokafka.structs import OffsetAndMetadata

Record: TypeAlias = "ConsumerRecord[bytes, bytes]"

__all__ = [
    "Admin",
    "Consumer",
    "OffsetAndMetadata",
    "Producer",
    "RebalanceListener",
    "Record",
    "TopicPartition",
]
