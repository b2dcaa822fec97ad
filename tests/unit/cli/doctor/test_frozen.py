"""Findings of doctor where a server takes connections and never answers."""

import itertools
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker import kafka_diagnosis
from broker.rights import needs
from cli.doctor import clickhouse_check, doctor_command
from cli.doctor.basic_checks import Finding
from cli.doctor.clickhouse_check import check_clickhouse
from cli.doctor.doctor_command import findings
from cli.doctor.kafka_check import check_kafka
from cli.workspace import Workspace
from schemas.settings import KafkaSettings, PipelineSettings
from storage import rights

NEEDS = needs(PipelineSettings())


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that the kernel connects clients to and that does nothing."""
    monkeypatch.setattr(kafka_diagnosis, "SECONDS", 1.0)
    monkeypatch.setattr(rights, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(clickhouse_check, "ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_frozen_kafka_is_told_from_one_without_tls(frozen: str, protocol: Any) -> None:
    settings = KafkaSettings(kafka_bootstrap=frozen, kafka_security_protocol=protocol)
    (finding,) = check_kafka(settings, NEEDS)
    assert finding.message == f"{frozen} takes connections and doesn't answer within 1 seconds"
    assert finding.fix == "see the broker's log and load"


def test_a_frozen_clickhouse_is_told_from_a_stopped_one(frozen: str) -> None:
    (finding,) = check_clickhouse(f"http://svc:x@{frozen}/svc")
    assert finding.message == f"{frozen} takes connections and doesn't answer within 1 seconds"
    assert finding.fix == "see the server's log and load"


def test_what_needs_a_server_that_does_not_answer_is_not_checked(
    frozen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def damage(*_: object) -> list[Finding]:
        checked.append("damage")
        return []

    def processes(*_: object, kafka_answers: bool, **__: object) -> list[Finding]:
        checked.append(f"processes, Kafka {'answers' if kafka_answers else 'is away'}")
        return []

    monkeypatch.setattr(doctor_command, "check_damage", damage)
    monkeypatch.setattr(doctor_command, "check_processes", processes)
    answering = partial(Finding, ok=True, message="answers")
    environ = {"SVC_KAFKA_BOOTSTRAP": frozen, "SVC_CLICKHOUSE_URL": f"http://svc:x@{frozen}/svc"}
    workspace = Workspace(tmp_path, environ)

    assert [finding.name for finding in findings(workspace) if not finding.ok] == [
        "kafka",
        "clickhouse",
        "clickhouse reader",
    ]
    assert checked == ["processes, Kafka is away"]

    checked.clear()
    monkeypatch.setattr(doctor_command, "check_kafka", lambda *_: [answering("kafka")])
    assert [finding.name for finding in findings(workspace) if finding.ok][-1] == "kafka"
    assert checked == ["processes, Kafka answers"]

    checked.clear()
    monkeypatch.setattr(doctor_command, "check_clickhouse", lambda *_: [answering("clickhouse")])
    list(findings(workspace))
    assert sorted(checked) == ["damage", "processes, Kafka answers"]


def test_a_finding_comes_before_later_checks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def waits(*_: object) -> list[Finding]:
        assert released.wait(60)
        return [Finding("clickhouse", True, "answers")]

    monkeypatch.setattr(doctor_command, "check_clickhouse", waits)
    ready = findings(Workspace(tmp_path, {}), ["writer"])
    assert [one.name for one in itertools.islice(ready, 3)] == ["settings", "disk", "kafka"]
    released.set()
    assert [one.name for one in ready] == ["clickhouse"]
