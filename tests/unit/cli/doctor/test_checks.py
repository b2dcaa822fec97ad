"""Doctor's checks that need no server."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from broker.diagnosis import split_address
from cli.doctor.checks import Finding, check_disk, check_settings
from cli.doctor.clickhouse import check_clickhouse
from cli.doctor.kafka import check_kafka
from schemas.settings import KafkaSettings
from tests.unit.local.tls_listener import TlsListener


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
    assert "SVC_KAFKA_BOOTSTRAP" in check_kafka(KafkaSettings())[0].fix
    assert "SVC_CLICKHOUSE_URL" in check_clickhouse("")[0].fix


def test_closed_port_is_distinguished_from_an_unknown_host() -> None:
    (finding,) = check_kafka(KafkaSettings(kafka_bootstrap="127.0.0.1:1"))
    assert "nothing listens on 127.0.0.1:1" in finding.message
    (finding,) = check_kafka(KafkaSettings(kafka_bootstrap="no-such-host.invalid:9092"))
    assert "name no-such-host.invalid is unknown" in finding.message
    (finding,) = check_clickhouse("http://svc:x@127.0.0.1:1/svc")
    assert "nothing answers at 127.0.0.1:1" in finding.message
    (finding,) = check_clickhouse("http://svc:x@no-such-host.invalid:8123/svc")
    assert "name in no-such-host.invalid:8123 is unknown" in finding.message


def test_malformed_address_is_reported() -> None:
    (finding,) = check_clickhouse("clickhouse://somewhere")
    assert "must be http(s)://" in finding.message


@pytest.fixture
def tls_listener(tmp_path: Path) -> Iterator[TlsListener]:
    with TlsListener(tmp_path) as listener:
        yield listener


def test_tls_listener_is_distinguished_from_a_plain_one(tls_listener: TlsListener) -> None:
    (finding,) = check_kafka(KafkaSettings(kafka_bootstrap=tls_listener.address))
    assert f"{tls_listener.address} speaks TLS" in finding.message
    assert "SVC_KAFKA_SECURITY_PROTOCOL" in finding.fix


def test_certificate_of_an_unknown_authority_is_reported(tls_listener: TlsListener) -> None:
    (finding,) = check_kafka(
        KafkaSettings(kafka_bootstrap=tls_listener.address, kafka_security_protocol="SSL")
    )
    assert "certificate" in finding.message
    assert "SVC_KAFKA_CA_FILE" in finding.fix


def test_unreadable_ca_file_is_reported(tls_listener: TlsListener, tmp_path: Path) -> None:
    settings = KafkaSettings(
        kafka_bootstrap=tls_listener.address,
        kafka_security_protocol="SSL",
        kafka_ca_file=str(tmp_path / "nowhere.pem"),
    )
    (finding,) = check_kafka(settings)
    assert "the CA file can't be read" in finding.message


def test_bad_certificate_is_reported_despite_another_good_broker(tls_listener: TlsListener) -> None:
    both = f"127.0.0.1:1,{tls_listener.address}"
    findings = check_kafka(KafkaSettings(kafka_bootstrap=both, kafka_security_protocol="SSL"))
    assert ["nothing listens" in finding.message for finding in findings] == [True, False]
    assert not any(finding.ok for finding in findings)


def test_a_finding_keeps_the_names_that_scripts_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Finding("topics", False, "missing", "create them"))) == {
        "name": "topics",
        "ok": False,
        "said": "missing",
        "mend": "create them",
    }
