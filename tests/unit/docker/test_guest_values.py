"""The values that `svc guest plan` prints, as the chart hands them to each process."""

from pathlib import Path

import pytest
import yaml

from schemas.environment import load
from schemas.settings import KafkaSettings
from tests.certificates import certificate, client_certificate
from tests.unit.cli.guest.test_plan import printed
from tests.unit.docker.pod_environment import environments
from tests.unit.docker.test_chart import STRUCTS, render

URLS = ",".join(f"https://svc:another secret@ch{number}.example.org:8443/errors" for number in (1, 2))
SECRETS = {
    "SVC_KAFKA_PASSWORD": "a",
    "SVC_KAFKA_CERTIFICATE": "b",
    "SVC_KAFKA_KEY": "c",
    "SVC_CLICKHOUSE_URL": "https://svc:b@ch:8443/errors",
    "SVC_CLICKHOUSE_SHARDS": URLS,
    "SVC_CLICKHOUSE_READER_URL": "https://svc_reader:b@ch:8443/errors",
    "SVC_ADMIN_PASSWORD": "c",
    "SVC_SESSION_SECRET": "d" * 40,
    "SVC_NOTIFY_CHANNELS": '{"team": {"webhook": "https://chat.example.org/"}}',
    "SVC_RATE_LIMIT_STORE": "redis://:secret@limits/0",
}
SPREAD = {"SVC_CLICKHOUSE_URL": "", "SVC_CLICKHOUSE_SHARDS": URLS, "SVC_CLICKHOUSE_CLUSTER": "events"}


@pytest.mark.parametrize("spread", [{}, SPREAD], ids=["one server", "several"])
def test_every_process_takes_the_settings_of_the_plan(tmp_path: Path, spread: dict[str, str]) -> None:
    plan = yaml.safe_load(
        printed(
            tmp_path, "helm", SVC_RATE_LIMIT_STORE="redis://:secret@limits/0", SVC_DEDUPE_DAYS="9", **spread
        )
    )
    found = environments(render(tmp_path, plan), SECRETS, tmp_path)
    assert set(found) == set(STRUCTS)
    for process, environ in found.items():
        settings: KafkaSettings = load(STRUCTS[process], environ)
        user = "svc-operator" if process == "migrate" else f"svc-{process}"
        assert (settings.kafka_username, settings.kafka_password) == (user, "a")
        assert (settings.topic_prefix, settings.topic_partitions) == ("team-errors.", 12)
        assert len(getattr(settings, "shard_urls", URLS.split(",") if spread else [""])) == (
            2 if spread else 1
        )


def test_certificates_are_where_the_pods_have_them(tmp_path: Path) -> None:
    authority = certificate(tmp_path)
    client = client_certificate(authority, "client")
    given = {
        "SVC_KAFKA_SECURITY_PROTOCOL": "SSL",
        "SVC_KAFKA_USERNAME": "",
        "SVC_KAFKA_PASSWORD": "",
        "SVC_KAFKA_CA_FILE": str(authority),
        "SVC_KAFKA_CERTIFICATE_FILE": str(client),
        "SVC_KAFKA_KEY_FILE": str(client),
    }
    text = printed(tmp_path, "helm", **given)
    plan = yaml.safe_load(text)
    assert str(tmp_path) not in text
    assert plan["certificates"] == "svc-certificates"
    assert plan["settings"]["SVC_KAFKA_CA_FILE"] == "/certificates/kafka-ca.pem"
    assert plan["edge"] == {
        "secret": {"name": "svc-edge", "keys": ["SVC_KAFKA_CERTIFICATE", "SVC_KAFKA_KEY"]}
    }
    writer = environments(render(tmp_path, plan), SECRETS, tmp_path / "pods")["writer"]
    assert Path(writer["SVC_KAFKA_KEY_FILE"]).read_text() == "c"
