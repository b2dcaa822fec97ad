"""Doctor and migrate on a broker with authentication and authorization."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from broker.client import follow_projects
from broker.kafka_diagnosis import why_unreachable
from broker.rights import PROCESSES, Process, needs
from broker.topics import ensure_topics
from cli.__main__ import svc
from cli.doctor.basic_checks import Finding
from cli.doctor.kafka_check import check_kafka
from local.ports import free_port
from local.process_groups import spawn
from runtime.process import kill
from schemas.health import Part
from schemas.projects import ProjectRegistry
from schemas.settings import KafkaSettings, PipelineSettings
from schemas.topics import topic_specs
from tests.eventually import eventually
from tests.secured_kafka import (
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    TOPIC,
    Acl,
    SecuredKafka,
    acls,
)
from tests.servers import CACHE

pytestmark = pytest.mark.slow

NEEDS = needs(PipelineSettings())
USERS = ("all", *PROCESSES, "lacks", "blind")


async def prepared(kafka: SecuredKafka) -> None:
    await ensure_topics(KafkaSettings(kafka_bootstrap=kafka.bootstrap))
    each = [acl for process, need in NEEDS.items() for acl in acls(process, need)]
    lacks = [a for a in acls("lacks", NEEDS["writer"]) if a.name not in {"svc.dead-letters", "svc-writer"}]
    whole = [Acl("all", TOPIC, "svc.", o, prefixed=True) for o in (DESCRIBE, DESCRIBE_CONFIGS)]
    blind = [Acl("blind", TOPIC, "svc.", DESCRIBE, prefixed=True)]
    # `last` is seen last: the broker takes them in their order.
    await kafka.allow(*each, *lacks, *whole, *blind)
    await eventually(lambda: asyncio.to_thread(lambda: rights(kafka, "dashboard", "dashboard").ok))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    kafka = SecuredKafka(tmp_path_factory.mktemp("secured"), CACHE, USERS)
    kafka.start(120)
    try:
        asyncio.run(prepared(kafka))
        yield kafka
    finally:
        kafka.stop()


def rights(kafka: SecuredKafka, user: str, process: Process) -> Finding:
    found = check_kafka(kafka.settings(user), {process: NEEDS[process]})
    return next((f for f in found if f.name.startswith("rights")), found[0])


@pytest.mark.parametrize("process", NEEDS)
def test_documented_rights_of_each_process_are_enough(kafka: SecuredKafka, process: Process) -> None:
    found = check_kafka(kafka.settings(process), {process: NEEDS[process]})
    assert [f for f in found if not f.ok] == []


def test_each_missing_right_is_named(kafka: SecuredKafka) -> None:
    finding = rights(kafka, "lacks", "writer")
    assert not finding.ok
    assert finding.message == "missing: Write on topic svc.dead-letters, Read on group svc-writer"


def test_doctor_checks_notify_with_its_credentials_under_the_name_of_its_group(
    kafka: SecuredKafka, tmp_path: Path
) -> None:
    words = ["--data-dir", str(tmp_path), "doctor", "--for", "notify"]
    answer = CliRunner(env=kafka.environ("notify")).invoke(svc, words)
    assert answer.exit_code == 0, answer.output
    assert "clickhouse" not in answer.output
    other = kafka.environ("notify") | {"SVC_NOTIFY_GROUP": "other"}
    assert "Read on group other" in CliRunner(env=other).invoke(svc, words).output
    reading = kafka.environ("notify") | {"SVC_CLICKHOUSE_READER_URL": "http://u:p@127.0.0.1:1/svc"}
    assert "clickhouse reader" in CliRunner(env=reading).invoke(svc, words).output


def test_a_topic_that_a_command_may_not_see_is_not_called_missing(kafka: SecuredKafka) -> None:
    answer = CliRunner(env=kafka.environ("edge")).invoke(svc, ["topics", "cat", "seen"])
    assert answer.exit_code == 1
    assert (
        "TopicAuthorizationFailedError: svc.seen; `svc doctor --for operator` names missing" in answer.output
    )
    assert "migrate" not in answer.output


@pytest.mark.parametrize(
    ("changed", "message", "fix"),
    [
        ({"kafka_password": "bad"}, "refuses user 'edge' or its password", "SVC_KAFKA_PASSWORD"),
        ({"kafka_username": "who"}, "refuses user 'who' or its password", "SVC_KAFKA_USERNAME"),
        (
            {"kafka_sasl_mechanism": "SCRAM-SHA-256"},
            "does not offer SCRAM-SHA-256",
            "SVC_KAFKA_SASL_MECHANISM",
        ),
        ({"kafka_security_protocol": "SASL_PLAINTEXT"}, "speaks TLS", "SVC_KAFKA_SECURITY_PROTOCOL"),
        ({"kafka_security_protocol": "SSL"}, "expects credentials", "to a SASL_ protocol"),
        ({"kafka_ca_file": ""}, "certificate of 127.0.0.1", "SVC_KAFKA_CA_FILE"),
    ],
)
def test_connection_failures_are_distinguished(
    kafka: SecuredKafka, changed: dict[str, str], message: str, fix: str
) -> None:
    reason = why_unreachable(kafka.settings("edge", **changed))
    assert reason is not None
    assert message in reason.message
    assert fix in reason.fix


def environ(kafka: SecuredKafka, user: str, **more: str) -> dict[str, str]:
    return {
        **kafka.environ(user),
        "SVC_CLICKHOUSE_URL": "http://u:p@127.0.0.1:1/svc",
        **more,
    }


@pytest.mark.parametrize(
    ("process", "port", "user", "missing"),
    [
        ("processors", "PROCESSORS_HEALTH", "writer", "Read on group svc-processors"),
        ("writer", "WRITER_HEALTH", "lacks", "Write on topic svc.dead-letters, Read on group svc-writer"),
        ("dashboard", "DASHBOARD", "writer", "Write on topic svc.projects"),
        ("notify", "NOTIFY_HEALTH", "writer", "Write on topic svc.notifications, Read on group svc-notify"),
    ],
)
async def test_a_process_that_starts_without_its_rights_names_them_in_one_line_and_waits(
    kafka: SecuredKafka, process: str, port: str, user: str, missing: str, tmp_path: Path
) -> None:
    own = free_port()
    more = {f"SVC_{port}_PORT": str(own), "SVC_ADMIN_PASSWORD": "long enough"}
    more |= {"SVC_DATA_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    log = tmp_path / "log"

    def lines() -> list[dict[str, Any]]:
        # The last one may be incomplete.
        return [json.loads(line) for line in log.read_text().rpartition("\n")[0].splitlines()]

    def named() -> bool:
        return log.exists() and any(missing in line["message"] for line in lines())

    command = [sys.executable, "-P", "-m", f"cli.{process}"]
    started = spawn(command, log=log, env=environ(kafka, user, **more))
    try:
        await eventually(named, 60)
        assert started.poll() is None
    finally:
        kill(started)
    (line,) = [line for line in lines() if line["logger"] == "broker.startup"]
    assert missing in line["message"]
    assert [line for line in lines() if "exception" in line] == []


async def test_topics_whose_settings_may_not_be_read_are_not_called_up_to_date(kafka: SecuredKafka) -> None:
    report = await ensure_topics(kafka.settings("blind"))
    assert report.differences == []
    assert report.unknown == [
        f"the settings of {spec.name} (DescribeConfigs is refused)" for spec in topic_specs("svc.", {}, 4, 1)
    ]
    assert (await ensure_topics(kafka.settings("all"))).unknown == []


async def test_follower_without_read_rights_reports_it_and_keeps_its_values(kafka: SecuredKafka) -> None:
    follower = follow_projects(kafka.settings("edge"), ProjectRegistry())
    following = asyncio.create_task(follower.run())
    taken = Acl("edge", TOPIC, "svc.projects", READ)

    def refused() -> bool:
        return follower.answering() == Part(ok=True, detail="Kafka refuses Read on topic svc.projects")

    try:
        await eventually(follower.loaded.is_set)
        await kafka.forbid(taken)
        await eventually(refused, 30)
        await kafka.allow(taken)
        await eventually(lambda: follower.answering() == Part(ok=True), 30)
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
