"""Doctor's checks that need no server."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.kafka_diagnosis import split_address
from broker.rights import needs
from cli.doctor.basic_checks import Finding, check_disk, check_settings
from cli.doctor.clickhouse_check import check_clickhouse
from cli.doctor.kafka_check import check_kafka
from schemas.settings import KafkaSettings, PipelineSettings
from tests.unit.local.tls_listener import TlsListener

NEEDS = needs(PipelineSettings())


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("kafka:9093", ("kafka", 9093)),
        ("kafka", ("kafka", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        (" 10.0.0.1:1 ", ("10.0.0.1", 1)),
    ],
)
def test_address_falls_into_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


def test_unknown_and_bad_settings_are_named() -> None:
    assert "SVC_NONSENSE" in check_settings({"SVC_NONSENSE": "1"}).message
    assert "SVC_INGEST_PORT" in check_settings({"SVC_INGEST_PORT": "many"}).message
    assert check_settings({}).ok


def test_disk_is_looked_at_where_the_data_will_be(tmp_path: Path) -> None:
    assert str(tmp_path) in check_disk(tmp_path / "not" / "yet").message


def test_missing_address_is_reported() -> None:
    assert "SVC_KAFKA_BOOTSTRAP" in check_kafka(KafkaSettings(), NEEDS)[0].fix
    assert "SVC_CLICKHOUSE_URL" in check_clickhouse("")[0].fix


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            partial(check_kafka, KafkaSettings(kafka_bootstrap="127.0.0.1:1"), NEEDS),
            "nothing listens on 127.0.0.1:1",
        ),
        (
            partial(check_kafka, KafkaSettings(kafka_bootstrap="no-such-host.invalid:9092"), NEEDS),
            "name no-such-host.invalid is unknown",
        ),
        (partial(check_clickhouse, "http://svc:x@127.0.0.1:1/svc"), "nothing answers at 127.0.0.1:1"),
        (
            partial(check_clickhouse, "http://svc:x@no-such-host.invalid:8123/svc"),
            "name in no-such-host.invalid:8123 is unknown",
        ),
        (partial(check_clickhouse, "clickhouse://somewhere"), "must be http(s)://"),
    ],
)
def test_faults_of_an_address_are_distinguished(found: Callable[[], list[Finding]], message: str) -> None:
    (finding,) = found()
    assert message in finding.message


@pytest.fixture
def tls_listener(tmp_path: Path) -> Iterator[TlsListener]:
    with TlsListener(tmp_path) as listener:
        yield listener


@pytest.mark.parametrize(
    ("security", "message", "fix"),
    [
        ({}, " speaks TLS", "SVC_KAFKA_SECURITY_PROTOCOL"),
        ({"kafka_security_protocol": "SSL"}, "certificate", "SVC_KAFKA_CA_FILE"),
        (
            {"kafka_security_protocol": "SSL", "kafka_ca_file": "/nowhere.pem"},
            "the files for TLS can't be read",
            "",
        ),
    ],
)
def test_faults_of_tls_are_distinguished(
    tls_listener: TlsListener, security: dict[str, Any], message: str, fix: str
) -> None:
    (finding,) = check_kafka(KafkaSettings(kafka_bootstrap=tls_listener.address, **security), NEEDS)
    assert message in finding.message
    assert fix in finding.fix


def test_bad_certificate_is_reported_despite_another_good_broker(tls_listener: TlsListener) -> None:
    both = f"127.0.0.1:1,{tls_listener.address}"
    findings = check_kafka(KafkaSettings(kafka_bootstrap=both, kafka_security_protocol="SSL"), NEEDS)
    assert ["nothing listens" in finding.message for finding in findings] == [True, False]
    assert not any(finding.ok for finding in findings)


def test_a_finding_keeps_the_names_that_scripts_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Finding("topics", False, "missing", "create them"))) == {
        "name": "topics",
        "ok": False,
        "said": "missing",
        "mend": "create them",
    }
