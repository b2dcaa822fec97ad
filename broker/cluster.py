"""Describes a Kafka cluster as these credentials see it: brokers, topics, replicas, and allowed operations.

Brokers report allowed operations on request (KIP-430), so nothing is written, read or committed to test them.
aiokafka's metadata request is too old to include them.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.admin import DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String
from msgspec import Struct

from broker.client import LOADING_PAUSES_SECONDS, open_admin
from broker.types import Admin
from schemas.settings import KafkaSettings

OPERATIONS: Final = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    8: "Describe",
    10: "DescribeConfigs",
    11: "AlterConfigs",
}
"""Kafka's codes of the operations that this service uses."""
_NOT_REPORTED: Final = -(1 << 31)
LOADING: Final = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)


class TopicView(Struct, frozen=True):
    """A visible topic, with its allowed operations.

    Of each partition it has the number of replicas and of in-sync replicas.
    """

    replicas: list[int]
    in_sync: list[int]
    allowed: frozenset[str]

    @property
    def partitions(self) -> int:
        return len(self.replicas)


class ClusterView(Struct, frozen=True):
    """The cluster as seen with these credentials.

    A topic neither in `topics` nor in `missing` may not be described.
    """

    brokers: int
    topics: Mapping[str, TopicView]
    missing: frozenset[str]
    groups: Mapping[str, frozenset[str]]

    def allowed(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """The allowed operations of each topic: none if it may not be described.

        A missing topic is left out.
        """
        visible = {name: topic.allowed for name, topic in self.topics.items()}
        return visible | dict.fromkeys(set(names) - visible.keys() - self.missing, frozenset[str]())


class _Metadata(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(("node_id", Int32), ("host", String("utf-8")), ("port", Int32), ("rack", String("utf-8"))),
        ),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class _MetadataRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _Metadata
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _TopicsAndRights(Request[_MetadataRequest]):  # type: ignore[misc]
    """The metadata of topics with their allowed operations; it doesn't create missing topics."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = list(topics)

    def build(self, request_struct_class: type[_MetadataRequest]) -> _MetadataRequest:
        return request_struct_class(self._topics, False, False, True)


class _GroupRequest(DescribeGroupsRequest_v3):  # type: ignore[misc]
    # aiokafka 0.14 parses the response as version 2.
    RESPONSE_TYPE = DescribeGroupsResponse_v3


class _GroupRights(Request[_GroupRequest]):  # type: ignore[misc]
    """A consumer group with its allowed operations."""

    API_KEY = 15

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_GroupRequest]) -> _GroupRequest:
        return request_struct_class([self._group], True)


def operations(bits: int) -> frozenset[str]:
    """The names of the operations in a broker's bit field; all of them if the broker doesn't report any."""
    if bits == _NOT_REPORTED:
        return frozenset(OPERATIONS.values())
    return frozenset(name for code, name in OPERATIONS.items() if bits >> code & 1)


async def describe_cluster(
    settings: KafkaSettings, topics: Iterable[str], groups: Iterable[str]
) -> ClusterView:
    """Describe the cluster. Raises KafkaError."""
    async with open_admin(settings) as admin:
        response = await admin._send_request(_TopicsAndRights(topics))
        allowed = {group: await _group(admin, group) for group in groups}
    described = {topic[1]: topic for topic in response.topics}
    return ClusterView(
        brokers=len(response.brokers),
        topics={name: _topic(topic) for name, topic in described.items() if not topic[0]},
        missing=frozenset(
            name for name, topic in described.items() if for_code(topic[0]) is UnknownTopicOrPartitionError
        ),
        groups=allowed,
    )


def _topic(description: tuple[Any, ...]) -> TopicView:
    partitions = description[3]
    return TopicView(
        replicas=[len(partition[4]) for partition in partitions],
        in_sync=[len(partition[5]) for partition in partitions],
        allowed=operations(description[4]),
    )


async def _group(admin: Admin, group: str) -> frozenset[str]:
    """The allowed operations of a group, which need not exist.

    A cluster's first group has to wait for its coordinator.
    """
    for pause in LOADING_PAUSES_SECONDS:
        with suppress(*LOADING):
            return await _describe_group(admin, group)
        await asyncio.sleep(pause)
    return await _describe_group(admin, group)


async def _describe_group(admin: Admin, group: str) -> frozenset[str]:
    try:
        coordinator = await admin.find_coordinator(group)
        response = await admin._send_request(_GroupRights(group), coordinator)
        code, *_rest, bits = response.groups[0]
        if code:
            raise for_code(code)(group)
    except GroupAuthorizationFailedError:
        return frozenset()
    return operations(bits)
