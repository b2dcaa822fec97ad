"""A Kafka broker on this machine: one JVM in KRaft mode, combined broker and controller, no container."""

from collections.abc import Mapping
from pathlib import Path

from local.disk_space import require_space
from local.kafka.command_line import format_data, kafka_command
from local.kafka.config import properties
from local.kafka.downloads import kafka_jars
from local.kafka.java import find_java
from local.kafka.probe import cluster_at
from local.local_server import LocalServer
from local.ports import stored_ports


class LocalKafka(LocalServer):
    """A broker whose data, ports and configuration live in `directory`; its jars in `cache`."""

    def __init__(
        self,
        directory: Path,
        cache: Path,
        heap_mb: int = 256,
        overrides: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        super().__init__("Kafka", directory, log or directory.resolve() / "kafka.log")
        self.cache = cache
        self.heap_mb = heap_mb
        self.overrides = dict(overrides or {})
        self.directory.mkdir(parents=True, exist_ok=True)
        self._ports = stored_ports(self.directory / "ports.json", ("broker", "controller"))

    @property
    def bootstrap(self) -> str:
        """The `host:port` for clients."""
        return f"127.0.0.1:{self._ports['broker']}"

    def prepare(self) -> list[str]:
        """Fetch missing jars, format a new data directory, and return the command that runs the broker.

        Raises NoDiskSpace, MissingProgram or DownloadError.
        """
        require_space("Kafka", self.directory)
        java, jars = find_java(), kafka_jars(self.cache)
        data, config = self.directory / "data", self.directory / "server.properties"
        config.write_text(properties(self._ports, data, self.overrides))
        format_data(java, jars, config, data)
        return kafka_command(java, jars, ["kafka.Kafka", str(config)], self.heap_mb)

    def ready(self) -> bool:
        """True when the broker lists itself and has our cluster id: another broker may have taken the port."""
        cluster = cluster_at(self._ports["broker"])
        return cluster is not None and cluster.brokers > 0 and cluster.id == self._cluster_id()

    def _cluster_id(self) -> str | None:
        """The cluster id in the data directory; None before it is formatted."""
        try:
            lines = (self.directory / "data" / "meta.properties").read_text().splitlines()
        except FileNotFoundError:
            return None
        return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)
