"""Every way in which a broker may want to know its clients, with the rights that the documents name."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from broker.client import open_producer
from broker.kafka_diagnosis import why_unreachable
from broker.rights import Process, needs
from broker.startup import wait_for_rights
from broker.topics import ensure_topics
from schemas.environment import load
from schemas.settings import KafkaSettings, PipelineSettings
from tests.eventually import eventually
from tests.integration.processors.process import WorkerProcess
from tests.secured_kafka import SecuredKafka, acls
from tests.servers import CACHE
from tests.token_server import TokenServer

# aiokafka leaves a connection to the garbage collector where no token is issued for it.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

NEEDS = needs(PipelineSettings())
WAYS = ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "certificate")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    kafka = SecuredKafka(tmp_path_factory.mktemp("secured"), CACHE, tuple(NEEDS))
    kafka.start(120)
    try:
        asyncio.run(ensure_topics(KafkaSettings(kafka_bootstrap=kafka.bootstrap)))
        asyncio.run(kafka.allow(*[acl for process, need in NEEDS.items() for acl in acls(process, need)]))
        yield kafka
    finally:
        kafka.stop()


def environ(kafka: SecuredKafka, user: str, way: str, token_url: str) -> dict[str, str]:
    if way == "certificate":
        return kafka.certified_environ(user)
    return {**kafka.environ(user), "SVC_KAFKA_SASL_MECHANISM": way, "SVC_KAFKA_TOKEN_URL": token_url}


@pytest.mark.parametrize("process", NEEDS)
@pytest.mark.parametrize("way", WAYS)
async def test_each_process_is_known_and_has_its_rights(
    kafka: SecuredKafka, way: str, process: Process
) -> None:
    async with TokenServer().running() as tokens, asyncio.timeout(30):
        await wait_for_rights(load(KafkaSettings, environ(kafka, process, way, tokens.url)), NEEDS[process])


@pytest.mark.parametrize("way", WAYS)
async def test_a_worker_joins_its_group(kafka: SecuredKafka, way: str, tmp_path: Path) -> None:
    async with TokenServer().running() as tokens:
        more = environ(kafka, "processors", way, tokens.url)
        worker = WorkerProcess(
            more.pop("SVC_KAFKA_BOOTSTRAP"),
            "svc.",
            tmp_path,
            way,
            SVC_PROCESSORS_APP="svc-processors",
            SVC_KAFKA_SESSION_SECONDS="6",
            SSL_CERT_FILE=os.environ.get("SSL_CERT_FILE", ""),
            **more,
        ).start()
        try:
            await eventually(lambda: asyncio.to_thread(worker.ready), 60)
        finally:
            worker.stop()


async def test_a_token_serves_until_it_is_about_to_expire(kafka: SecuredKafka) -> None:
    async with TokenServer(life_seconds=5).running() as tokens:
        settings = load(KafkaSettings, environ(kafka, "edge", "OAUTHBEARER", tokens.url))
        async with open_producer(
            replace(settings, kafka_token_scope="kafka"), connections_max_idle_ms=100
        ) as producer:
            await producer.send_and_wait("svc.events", b"1", partition=0)
            assert tokens.issued == 1

            async def renewed() -> bool:
                await producer.send_and_wait("svc.events", b"1", partition=0)
                return tokens.issued > 1

            # The broker ends connections whose token has expired.
            await eventually(renewed, 60)
        assert set(tokens.scopes) == {"kafka"}


@pytest.mark.parametrize(
    ("changed", "message", "fix"),
    [
        ({"kafka_password": "bad"}, "gives no token: status 401", "SVC_KAFKA_PASSWORD"),
        (
            {"kafka_token_url": "http://127.0.0.1:1/token"},
            "gives no token: Cannot connect",
            "SVC_KAFKA_TOKEN_URL",
        ),
    ],
)
async def test_a_refused_token_is_told(
    kafka: SecuredKafka, changed: dict[str, str], message: str, fix: str
) -> None:
    async with TokenServer().running() as tokens:
        settings = replace(load(KafkaSettings, environ(kafka, "edge", "OAUTHBEARER", tokens.url)), **changed)
        reason = await asyncio.to_thread(why_unreachable, settings)
    assert reason is not None
    assert message in reason.message
    assert fix in reason.fix


async def test_a_token_that_the_broker_refuses_is_told(kafka: SecuredKafka) -> None:
    async with TokenServer(life_seconds=-3600).running() as tokens:
        settings = load(KafkaSettings, environ(kafka, "edge", "OAUTHBEARER", tokens.url))
        reason = await asyncio.to_thread(why_unreachable, settings)
    assert reason is not None
    assert "refuses the token of 'edge'" in reason.message


async def test_a_client_without_a_certificate_is_told(kafka: SecuredKafka) -> None:
    settings = load(KafkaSettings, kafka.certified_environ("edge"))
    reason = await asyncio.to_thread(why_unreachable, replace(settings, kafka_certificate_file=""))
    assert reason is not None
    assert "SVC_KAFKA_CERTIFICATE_FILE" in reason.fix
