"""Several brokers of one Kafka cluster on this machine: each topic has a copy on all of them, and a write needs two."""

from collections.abc import Sequence
from pathlib import Path

from local.kafka.command_line import format_data
from local.kafka.config import cluster_id, properties
from local.kafka.downloads import kafka_jars
from local.kafka.java import find_java
from local.kafka.local_kafka import LocalKafka
from local.ports import free_port, is_free
from tests.secured_kafka import scram_of, secured

COPIES = 3


class ClusterBroker(LocalKafka):
    """One broker, which is a controller too; `join` tells it of the others before its first start."""

    def __init__(self, directory: Path, cache: Path, log: Path | None = None) -> None:
        super().__init__(directory, cache, heap_mb=192, log=log)
        self._cluster = ""
        self._controllers = ""
        self._users: list[str] = []
        """Arguments that say which users there are."""
        self._last: ClusterBroker = self

    def join(self, brokers: "Sequence[ClusterBroker]", cluster: str) -> None:
        """Be one of these brokers, which are started in this order."""
        self._last = brokers[-1]
        controllers = [f"127.0.0.1:{broker._ports['controller']}" for broker in brokers]
        self._cluster = cluster
        self._controllers = ",".join(
            f"{number + 1}@{address}:{_folder_id(number)}" for number, address in enumerate(controllers)
        )
        self.overrides |= _settings(len(brokers)) | {
            "node.id": str(brokers.index(self) + 1),
            "controller.quorum.bootstrap.servers": ",".join(controllers),
        }

    def ready(self) -> bool:
        """True of all but the last as soon as they listen: alone they elect no controller."""
        port = self._ports["controller"]
        return super().ready() if self is self._last else not is_free(port)

    def prepare(self) -> list[str]:
        """Format the data directory with the ids of all."""
        config, data = self.directory / "server.properties", self.directory / "data"
        config.write_text(properties(self._ports, data, self.overrides))
        quorum = ("--initial-controllers", self._controllers, *self._users)
        format_data(find_java(), kafka_jars(self.cache), config, data, quorum, self._cluster)
        return super().prepare()


class SecuredBroker(ClusterBroker):
    """One with the listeners of `SecuredKafka`."""

    def __init__(self, directory: Path, cache: Path, authority: Path, users: Sequence[str]) -> None:
        super().__init__(directory, cache)
        self.secured, self.authority = f"127.0.0.1:{free_port()}", authority
        certified = f"127.0.0.1:{free_port()}"
        self.overrides |= secured(self._ports, self.secured, certified, authority, users)
        self._users = scram_of(users)


def brokers_of(folder: Path, cache: Path) -> list[ClusterBroker]:
    """The brokers of a new cluster, which are not started."""
    brokers = [ClusterBroker(folder / f"kafka{number + 1}", cache) for number in range(COPIES)]
    together(brokers)
    return brokers


def together(brokers: Sequence[ClusterBroker]) -> None:
    """Make a new cluster of brokers."""
    cluster = cluster_id()
    for broker in brokers:
        broker.join(brokers, cluster)


def _folder_id(number: int) -> str:
    """22 characters of base64 for 16 bytes."""
    return f"KafkaBrokerOfTests000{'AQgw'[number]}"


def _settings(brokers: int) -> dict[str, str]:
    copies, least = str(min(COPIES, brokers)), str(min(COPIES, brokers) - 1)
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": least,
        # A broker that is killed leaves the copies in step soon.
        "replica.lag.time.max.ms": "5000",
    }
