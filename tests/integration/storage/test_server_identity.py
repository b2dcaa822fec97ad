"""An address that leads to several servers, or to another one than that of the data, is refused by name."""

import asyncio
import shutil
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from cli.doctor.clickhouse_check import check_clickhouse
from local.clickhouse.local_clickhouse import PASSWORDS, LocalClickHouse
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.health import Health
from schemas.settings import WriterSettings
from storage.client import ClickHouseError, open_client
from storage.errors import AnotherServer
from storage.server_identity import check_server
from storage.tables.migrations.migrate import migrate
from storage.write.inserter import Inserter
from storage.write.writer_metrics import WriterMetrics
from tests.certificates import certificate
from tests.eventually import eventually
from tests.forwarder import forwarding


def at(url: str, port: int, scheme: str = "http") -> str:
    """The address with another port."""
    parts = urlsplit(url)
    return parts._replace(scheme=scheme, netloc=parts.netloc.replace(str(parts.port), str(port))).geturl()


@pytest.mark.slow
async def test_a_balancer_over_two_servers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    servers = [LocalClickHouse(tmp_path / "a").start()]
    # Both take the same password, as behind a real balancer.
    shutil.copy(tmp_path / "a" / PASSWORDS, tmp_path / "b")
    servers.append(LocalClickHouse(tmp_path / "b").start())
    try:
        first, second = [server.url() for server in servers]
        for url in (first, second):
            migrate(url)
            check_server(url)
        with forwarding([port for url in (first, second) if (port := urlsplit(url).port)]) as port:
            balanced = at(first, port)
            with pytest.raises(AnotherServer, match="leads to 2 servers"):
                migrate(balanced)
            health = Health()
            inserter = Inserter(balanced, "events", health, WriterMetrics(CollectorRegistry()))
            waiting = asyncio.create_task(inserter.run(lambda _: check_server(balanced)))
            await eventually(lambda: "leads to 2 servers" in health.parts()["events"].detail)
            waiting.cancel()
            inserter.close()
    finally:
        for server in servers:
            server.stop()


def test_a_moved_database_is_accepted_when_told(clickhouse_database_url: str) -> None:
    url = clickhouse_database_url
    migrate(url)
    check_server(url)
    client = open_client(url)
    client.command("ALTER TABLE migrations UPDATE server = 'elsewhere' WHERE 1 SETTINGS mutations_sync = 1")
    client.close()
    [finding] = [finding for finding in check_clickhouse(url) if not finding.ok]
    assert finding.name == "server"
    assert "svc migrate --moved" in finding.fix
    with pytest.raises(AnotherServer):
        migrate(url)
    migrate(url, moved=True)
    check_server(url)


@pytest.mark.slow
def test_a_private_ca_is_named_by_a_setting(clickhouse_database_url: str, tmp_path: Path) -> None:
    file = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    plain = urlsplit(clickhouse_database_url)
    assert plain.port
    with forwarding([plain.port], context) as port:
        url = at(clickhouse_database_url, port, "https")
        with pytest.raises(ClickHouseError):
            open_client(url)
        [finding] = check_clickhouse(url)
        assert finding.fix == "set SVC_CLICKHOUSE_CA_FILE to its CA"
        environ = {"SVC_CLICKHOUSE_URL": url, "SVC_CLICKHOUSE_CA_FILE": str(file)}
        settings = load(WriterSettings, environ)
        open_client(settings.clickhouse_url).close()
        migrate(settings.clickhouse_url)
        assert all(finding.ok for finding in check_clickhouse(settings.clickhouse_url))
    with pytest.raises(BadSetting, match="SVC_CLICKHOUSE_CA_FILE: can't use"):
        load(WriterSettings, environ | {"SVC_CLICKHOUSE_CA_FILE": str(tmp_path / "missing.pem")})
