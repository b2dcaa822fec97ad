"""Our requirements on the Kafka, ClickHouse and network of other teams, from the code that uses them. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from broker.rights import PROCESSES, KafkaRight, Process, needs, rebuild_rights, rights_of
from broker.topics import specs_of
from schemas.environment import PREFIX, is_secret, variables
from schemas.settings import (
    EdgeSettings,
    NotifySettings,
    ProcessorsSettings,
    WriterSettings,
)
from schemas.topics import TopicSpec
from storage.rights import Right, operator_rights, reader_rights, writer_rights

_OF_A_MACHINE: Final = re.compile(r"SVC_(DATA_DIR|INSTANCE|\w+_(HOST|PORT|WORKER))")
"""Settings of the chart itself, or of a single machine."""
_ALWAYS: Final = {"SVC_TOPIC_PARTITIONS", "SVC_TOPIC_REPLICATION"}
"""Settings with other defaults in the chart."""
_FILES: Final = {
    "SVC_KAFKA_CA_FILE": "/certificates/kafka-ca.pem",
    "SVC_CLICKHOUSE_CA_FILE": "/certificates/clickhouse-ca.pem",
}
"""Paths of these files in a pod."""
_CLIENT_FILES: Final = {"SVC_KAFKA_CERTIFICATE_FILE", "SVC_KAFKA_KEY_FILE"}
_KEEPER_PORT: Final = "9181"


class Flow(Struct, frozen=True):
    """A connection to allow: the opening side, and the listening one."""

    source: str
    target: str
    port: str
    why: str


class Plan(Struct, frozen=True):
    """The rights by process, the topics, the grants by ClickHouse user, the connections and our settings.

    `rebuild` are rights of the operator for a day. `scram` is the mechanism of the users' passwords on Kafka, empty
    if Kafka doesn't have them. `secrets` are those that each process reads, `cluster` the name and the servers of
    several: of each the addresses of its replicas.
    """

    topics: list[TopicSpec]
    rights: dict[Process, list[KafkaRight]]
    rebuild: list[KafkaRight]
    scram: str
    has_users: bool
    grants: dict[str, list[Right]]
    flows: list[Flow]
    settings: dict[str, str]
    secrets: dict[str, list[str]]
    cluster: tuple[str, tuple[tuple[str, ...], ...]]
    prefix: str


def plan(
    edge: EdgeSettings,
    processors: ProcessorsSettings,
    writer: WriterSettings,
    notify: NotifySettings,
    database: str,
) -> Plan:
    """The plan of a deployment with these settings."""
    required = needs(processors, notify.notify_group)
    several = len(writer.shard_urls) > 1, any(len(urls) > 1 for urls in writer.replica_urls)
    fields, values = variables(), {}
    for struct in (edge, processors, writer, notify):
        for name, value in asdict(struct).items():
            variable = PREFIX + name.upper()
            if (value != fields[variable].default or variable in _ALWAYS) and not _OF_A_MACHINE.fullmatch(
                variable
            ):
                values[variable] = _FILES.get(
                    variable, value if isinstance(value, str) else json.dumps(value)
                )
    # Each process is another user.
    users = values.pop("SVC_KAFKA_USERNAME", "") or edge.kafka_security_protocol.startswith("SASL")
    return Plan(
        topics=specs_of(edge, grouped_events=processors.grouped_events),
        rights={process: rights_of(required[process], edge) for process in PROCESSES},
        rebuild=rebuild_rights(edge),
        scram=edge.kafka_sasl_mechanism if users and "SCRAM" in edge.kafka_sasl_mechanism else "",
        has_users=bool(users),
        grants={
            "svc_operator": list(operator_rights(database, *several)),
            "svc": list(writer_rights(database, *several)),
            "svc_reader": list(reader_rights(database, *several)),
        },
        flows=list(_flows(edge, processors, writer, notify)),
        settings={
            name: value
            for name, value in values.items()
            if not is_secret(fields[name]) and name not in _CLIENT_FILES
        },
        secrets=_secrets(edge, writer, notify, has_users=bool(users)),
        cluster=(writer.clickhouse_cluster, writer.replica_urls if any(several) else ()),
        prefix=edge.topic_prefix,
    )


def _secrets(
    edge: EdgeSettings, writer: WriterSettings, notify: NotifySettings, *, has_users: bool
) -> dict[str, list[str]]:
    """The keys of each process's Secret."""
    kafka = [
        *(["SVC_KAFKA_PASSWORD"] if has_users else []),
        *(["SVC_KAFKA_CERTIFICATE"] if edge.kafka_certificate_file else []),
        *(["SVC_KAFKA_KEY"] if edge.kafka_key_file else []),
    ]
    address = "SVC_CLICKHOUSE_SHARDS" if writer.clickhouse_shards else "SVC_CLICKHOUSE_URL"
    reader = "SVC_CLICKHOUSE_READER_URL"
    found = {
        "migrate": [*kafka, address],
        "edge": [*kafka, *(["SVC_RATE_LIMIT_STORE"] if edge.rate_limit_store else [])],
        "processors": [*kafka, address],
        "writer": [*kafka, address],
        "dashboard": [*kafka, address, reader, "SVC_ADMIN_PASSWORD", "SVC_SESSION_SECRET"],
    }
    if notify.notify_channels:
        found["notify"] = [*kafka, address, reader, "SVC_NOTIFY_CHANNELS"]
    return found


def _flows(
    edge: EdgeSettings, processors: ProcessorsSettings, writer: WriterSettings, notify: NotifySettings
) -> Iterator[Flow]:
    # The dashboard's settings require its password, which doesn't exist yet.
    dashboard = variables()["SVC_DASHBOARD_PORT"].default
    brokers = sorted({address.rpartition(":")[2] for address in edge.kafka_bootstrap.split(",") if address})
    kafka = ", ".join(brokers) or "9092"
    url = urlsplit(processors.clickhouse_url)
    clickhouse = str(url.port or (8443 if url.scheme == "https" else 8123))
    yield Flow("applications", "edge", str(edge.ingest_port), "events, over HTTP; TLS ends at your proxy")
    yield Flow("browsers", "dashboard", f"{dashboard}", "pages and the read API, behind your proxy")
    for process in PROCESSES:
        yield Flow(process, "Kafka", kafka, edge.kafka_security_protocol)
    for process in PROCESSES[1:]:
        yield Flow(process, "ClickHouse", clickhouse, "HTTPS" if url.scheme == "https" else "HTTP")
    if len(writer.shard_urls) > 1:
        port = str(native_port(processors.clickhouse_url))
        yield Flow("ClickHouse", "ClickHouse", port, "each server to all others: queries over all of them")
    if any(len(urls) > 1 for urls in writer.replica_urls):
        yield Flow("ClickHouse", "ClickHouse Keeper", _KEEPER_PORT, "coordination of replicas")
        yield Flow("ClickHouse", "ClickHouse", "9009", "each replica to those of its server: parts of tables")
    if edge.kafka_token_url and edge.kafka_sasl_mechanism == "OAUTHBEARER":
        yield Flow(
            "all",
            str(urlsplit(edge.kafka_token_url).hostname),
            _port(edge.kafka_token_url),
            "tokens for Kafka",
        )
    if edge.rate_limit_store:
        yield Flow(
            "edge",
            "rate limit store",
            _port(edge.rate_limit_store, 6379),
            "one rate limit for several machines",
        )
    yield Flow("notify", "mail, chat, webhooks", "443, 465, 587", "the channels of SVC_NOTIFY_CHANNELS")
    health = processors.processors_health_port, writer.writer_health_port, notify.notify_health_port
    yield Flow(
        "Prometheus",
        "edge, dashboard, processors, writer, notify",
        ", ".join(map(str, (edge.ingest_port, dashboard, *health))),
        "`/metrics`",
    )


def native_port(url: str) -> int:
    """The port at which a server takes queries of others: with TLS if it has TLS for us."""
    return 9440 if urlsplit(url).scheme == "https" else 9000


def _port(url: str, default: int = 0) -> str:
    parts = urlsplit(url)
    return str(parts.port or default or (443 if parts.scheme == "https" else 80))
