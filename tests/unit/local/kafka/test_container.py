"""The choice of the broker, and the commands for a container, with a fake engine that records them."""

from pathlib import Path

import pytest

from local.kafka.container import IMAGE, ContainerKafka, choose_kafka, find_engine
from local.kafka.local_kafka import LocalKafka
from local.local_errors import StartError
from tests.unit.local.kafka.test_java import fake_java


def program(folder: Path, name: str, text: str = "exit 0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def without_java(folder: Path) -> dict[str, str]:
    """An environment whose first Java is too old, on any machine."""
    fake_java(folder / "old", "11.0.2")
    return {"JAVA_HOME": str(folder / "old"), "PATH": str(folder / "bin")}


def test_container_is_chosen_if_only_an_engine_is_available(tmp_path: Path) -> None:
    program(tmp_path / "bin", "docker")
    kafka = choose_kafka(tmp_path / "kafka", tmp_path / "cache", without_java(tmp_path))
    assert isinstance(kafka, ContainerKafka)


def test_jars_are_chosen_if_java_and_maven_are_available(tmp_path: Path) -> None:
    program(tmp_path / "bin", "docker")
    program(tmp_path / "bin", "mvn")
    fake_java(tmp_path / "jdk", "21.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": str(tmp_path / "bin")}
    assert isinstance(choose_kafka(tmp_path / "kafka", tmp_path / "cache", environ), LocalKafka)


def test_with_neither_the_broker_from_jars_names_the_java_to_install(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    kafka = choose_kafka(tmp_path / "kafka", tmp_path / "cache", without_java(tmp_path))
    assert isinstance(kafka, LocalKafka)


def test_engine_whose_daemon_does_not_answer_is_none(tmp_path: Path) -> None:
    program(tmp_path / "bin", "docker", "exit 1")
    assert find_engine({"PATH": str(tmp_path / "bin")}) is None


def test_command_publishes_the_stored_port_to_this_machine_only(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    engine = program(tmp_path / "bin", "docker", f'echo "$@" >> {log}')
    kafka = ContainerKafka(str(engine), tmp_path / "kafka")
    command = kafka.prepare()
    port = kafka.bootstrap.split(":")[1]
    assert command[:2] == [str(engine), "run"]
    assert command[-1] == IMAGE
    assert f"127.0.0.1:{port}:9092" in command
    assert f"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port}" in command
    name = command[command.index("--name") + 1]
    assert log.read_text().splitlines() == [f"image inspect {IMAGE}", f"rm --force {name}"]
    assert ContainerKafka(str(engine), tmp_path / "kafka").prepare() == command


def test_image_that_can_not_be_had_is_an_error_with_the_engines_words(tmp_path: Path) -> None:
    engine = program(tmp_path / "bin", "docker", "echo no route >&2; exit 1")
    with pytest.raises(StartError, match="no route"):
        ContainerKafka(str(engine), tmp_path / "kafka").prepare()
