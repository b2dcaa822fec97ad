"""What we need of others' Kafka, ClickHouse and network, from the code that uses it. Pure."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from broker.rights import PROCESSES, KafkaRight, Process, needs, rights_of
from broker.topics import specs_of
from schemas.environment import PREFIX, is_secret, variables
from schemas.settings import (
    ClickHouseSettings,
    EdgeSettings,
    NotifySettings,
    ProcessorsSettings,
    WriterSettings,
)
from schemas.topics import TopicSpec
from storage.rights import Right, operator_rights, reader_rights, writer_rights

SHARED: Final = ClickHouseSettings.__struct_fields__


class Flow(Struct, frozen=True):
    """Who opens connections to whom."""

    source: str
    target: str
    port: str
    why: str


class Plan(Struct, frozen=True):
    """The rights by process, the topics, the grants by ClickHouse user, the connections and our settings."""

    topics: list[TopicSpec]
    rights: dict[Process, list[KafkaRight]]
    grants: dict[str, list[Right]]
    flows: list[Flow]
    settings: dict[str, str]
    secrets: list[str]
    prefix: str


def plan(
    edge: EdgeSettings,
    processors: ProcessorsSettings,
    writer: WriterSettings,
    notify: NotifySettings,
    database: str,
) -> Plan:
    """The plan of a deployment with these settings."""
    required = needs(
        processors.processors_app,
        writer.writer_group,
        grouped_events=processors.grouped_events,
        prefix=edge.topic_prefix,
        shards=max(1, len(writer.shard_urls)),
        notify_group=notify.notify_group,
    )
    several = len(writer.shard_urls) > 1, any(len(urls) > 1 for urls in writer.replica_urls)
    shared = {name: value for name, value in asdict(processors).items() if name in SHARED}
    given = shared | {
        "processors_app": processors.processors_app,
        "writer_group": writer.writer_group,
        "notify_group": notify.notify_group,
        "notify_channels": notify.notify_channels,
    }
    known = {PREFIX + name.upper(): value for name, value in given.items()}
    fields = variables()
    changed = {name: str(value) for name, value in known.items() if value != fields[name].default}
    return Plan(
        topics=specs_of(edge),
        rights={process: rights_of(required[process], edge) for process in PROCESSES},
        grants={
            "svc_operator": list(operator_rights(database, *several)),
            "svc": list(writer_rights(database, *several)),
            "svc_reader": list(reader_rights(database, *several)),
        },
        flows=list(_flows(edge, processors, writer, notify)),
        settings={
            name: value
            for name, value in changed.items()
            if not is_secret(fields[name]) and name != "SVC_DATA_DIR"
        },
        secrets=[name for name in changed if is_secret(fields[name])],
        prefix=edge.topic_prefix,
    )


def _flows(
    edge: EdgeSettings, processors: ProcessorsSettings, writer: WriterSettings, notify: NotifySettings
) -> Iterator[Flow]:
    # The struct of the dashboard needs its password, which nobody has yet.
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


def _port(url: str, default: int = 0) -> str:
    parts = urlsplit(url)
    return str(parts.port or default or (443 if parts.scheme == "https" else 80))
