"""The configuration (`server.properties`) of a broker on one machine."""

import base64
import uuid
from collections.abc import Mapping
from pathlib import Path

# Small pools and single replicas: one machine, few clients.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # With the default of 9 s a start after kill -9 waits for the old registration to expire.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "log.cleaner.threads": "1",
    # A recovery reads the records that aren't compacted yet; the default is 15 s.
    "log.cleaner.backoff.ms": "2000",
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    "message.max.bytes": str(4 << 20),
    "replica.fetch.max.bytes": str(4 << 20),
}


def cluster_id() -> str:
    """22 characters of base64; the first is a letter, because a leading dash would be parsed as an option."""
    return "K" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def properties(ports: Mapping[str, int], data: Path, overrides: Mapping[str, str]) -> str:
    """The text of `server.properties`."""
    broker, controller = f"127.0.0.1:{ports['broker']}", f"127.0.0.1:{ports['controller']}"
    settings = SETTINGS | {
        "controller.quorum.bootstrap.servers": controller,
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "log.dirs": str(data),
    }
    return "".join(f"{name}={value}\n" for name, value in (settings | dict(overrides)).items())
