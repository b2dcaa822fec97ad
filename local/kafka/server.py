"""A real Kafka broker on this machine: one JVM in KRaft mode, broker and controller in one, no container engine."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from local.disk_space import require_space
from local.errors import StartError
from local.kafka.class_archive import class_archive
from local.kafka.command import format_data, kafka_command
from local.kafka.config import properties
from local.kafka.downloads import kafka_jars
from local.kafka.java import find_java
from local.kafka.probe import cluster_at
from local.ports import stored_ports
from local.process import await_ready, end, kill_group, spawn


class LocalKafka:
    """A broker whose data, ports and configuration live in `directory`; its jars in `cache`.

    All methods block; call them with `asyncio.to_thread` from a loop. The broker dies with this process.
    """

    def __init__(
        self,
        directory: Path,
        cache: Path,
        heap_mb: int = 256,
        overrides: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self.cache = cache
        self.heap_mb = heap_mb
        self.overrides = dict(overrides or {})
        self.log = log or self.directory / "kafka.log"
        self.directory.mkdir(parents=True, exist_ok=True)
        self._ports = stored_ports(self.directory / "ports.json", ("broker", "controller"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The `host:port` for clients."""
        return f"127.0.0.1:{self._ports['broker']}"

    @property
    def pid(self) -> int | None:
        """The process id of the running broker."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def prepare(self) -> list[str]:
        """Fetch what is missing, format a new data directory, and return the command that runs the broker. Raises NoRoom."""
        require_space("Kafka", self.directory)
        java, jars = find_java(), kafka_jars(self.cache)
        data, config = self.directory / "data", self.directory / "server.properties"
        config.write_text(properties(self._ports, data, self.overrides))
        format_data(java, jars, config, data)
        archive = class_archive(java, jars)
        extra = (f"-XX:SharedArchiveFile={archive}",) if archive else ()
        return kafka_command(java, jars, ["kafka.Kafka", str(config)], self.heap_mb, extra)

    def ready(self) -> bool:
        """True when the broker lists itself and is of our cluster: another one may have got the port first."""
        found = cluster_at(self._ports["broker"])
        return found is not None and found.brokers > 0 and found.id == self._cluster_id()

    def _cluster_id(self) -> str | None:
        """What the data directory was formatted with; None before."""
        try:
            lines = (self.directory / "data" / "meta.properties").read_text().splitlines()
        except FileNotFoundError:
            return None
        return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)

    def start(self, timeout: float = 60) -> "LocalKafka":
        """Start the broker and wait until it is ready. Raises StartError, MissingProgram or DownloadError."""
        self._process = spawn(self.prepare(), log=self.log, cwd=self.directory)
        try:
            await_ready("Kafka", self._process, self.ready, self.log, timeout, self.directory)
        except StartError:
            self.kill()
            raise
        return self

    def stop(self, timeout: float = 30) -> None:
        """Stop the broker in good order; kill it after `timeout` seconds."""
        if self._process:
            end(self._process, timeout)

    def kill(self) -> None:
        """Kill the broker at once; its data stays as it was."""
        if self._process:
            kill_group(self._process)
