"""A Kafka broker in a container, for machines with a container engine but without Java or Maven."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from local.kafka.downloads import KAFKA_VERSION, is_whole, jars_in
from local.kafka.java import find_java
from local.kafka.local_kafka import LocalKafka
from local.kafka.probe import brokers
from local.local_errors import MissingProgram, StartError
from local.ports import stored_ports

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
ENGINES = ("docker", "podman")
LISTENER = 9092
DATA = "/var/lib/kafka/data"


class KafkaServer(Protocol):
    """The interface that a supervisor needs to run a broker."""

    @property
    def bootstrap(self) -> str:
        """The `host:port` for clients."""

    def prepare(self) -> list[str]:
        """Prepare a start; return the command that runs the broker."""

    def ready(self) -> bool:
        """True when the broker lists itself."""


def environment(port: int) -> dict[str, str]:
    """The image's variables for a single broker that local clients reach on `port`."""
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": f"PLAINTEXT://:{LISTENER},CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "4",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
        "KAFKA_MESSAGE_MAX_BYTES": str(4 << 20),
        "KAFKA_LOG_DIRS": DATA,
        "KAFKA_HEAP_OPTS": "-Xms64m -Xmx256m",
    }


def find_engine(environ: Mapping[str, str] = os.environ) -> str | None:
    """The program of a working container engine, or None."""
    for name in ENGINES:
        program = shutil.which(name, path=environ.get("PATH"))
        if program and not subprocess.run([program, "info"], capture_output=True, check=False).returncode:
            return program
    return None


class ContainerKafka:
    """A broker in a container; its port is stored in `directory`, its data in a volume named after that directory."""

    def __init__(self, engine: str, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._engine = engine
        self._port = stored_ports(directory / "ports.json", ("broker",))["broker"]
        self._name = f"svc-kafka-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]}"

    @property
    def bootstrap(self) -> str:
        """The `host:port` for clients."""
        return f"127.0.0.1:{self._port}"

    def prepare(self) -> list[str]:
        """Pull the image, remove a container left by a kill, and return the command that runs the broker.

        Raises StartError.
        """
        image = subprocess.run([self._engine, "image", "inspect", IMAGE], capture_output=True, check=False)
        if image.returncode:
            pull = subprocess.run([self._engine, "pull", IMAGE], capture_output=True, text=True, check=False)
            if pull.returncode:
                raise StartError(f"{IMAGE} could not be pulled:\n{pull.stderr[-2000:]}")
        subprocess.run([self._engine, "rm", "--force", self._name], capture_output=True, check=False)
        variables = [
            word for name, value in environment(self._port).items() for word in ("--env", f"{name}={value}")
        ]
        return [
            *(self._engine, "run", "--rm", "--init", "--name", self._name),
            *("--publish", f"127.0.0.1:{self._port}:{LISTENER}", "--volume", f"{self._name}:{DATA}"),
            *variables,
            IMAGE,
        ]

    def ready(self) -> bool:
        """True when the broker lists itself."""
        return brokers(self._port) > 0


def choose_kafka(directory: Path, cache: Path, environ: Mapping[str, str] = os.environ) -> KafkaServer:
    """A broker from jars if Java and Maven (or fetched jars) are available, else a container if an engine works.

    Otherwise the broker from jars: its start error names the missing Java.
    """
    try:
        find_java(environ)
        runnable = bool(shutil.which("mvn", path=environ.get("PATH"))) or is_whole(jars_in(cache))
    except MissingProgram:
        runnable = False
    engine = None if runnable else find_engine(environ)
    return ContainerKafka(engine, directory) if engine else LocalKafka(directory, cache)
