"""`svc doctor` and Kafka: tells apart a wrong name, nothing that listens, TLS, credentials, and missing topics."""

import asyncio
import logging
import socket
import ssl
from contextlib import suppress

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from local.checks import Finding
from schemas.kafka import client_options
from schemas.settings import KafkaSettings
from schemas.topics import topic_specs

SECONDS = 5.0
NAME = "kafka"


def split_address(address: str, default_port: int = 9092) -> tuple[str, int]:
    """Host and port of one `host:port`, of `[::1]:port` too."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdecimal():
        return address.strip("[] "), default_port
    return host.strip("[]"), int(port)


def _connection(host: str, port: int) -> Finding | None:
    """What keeps a TCP connection from being made, or None."""
    try:
        socket.create_connection((host, port), SECONDS).close()
    except socket.gaierror:
        return Finding(NAME, False, f"the name {host} is unknown", "correct SVC_KAFKA_BOOTSTRAP")
    except TimeoutError:
        return Finding(
            NAME,
            False,
            f"{host}:{port} does not answer",
            "look for a firewall on the way, or correct SVC_KAFKA_BOOTSTRAP",
        )
    except OSError as error:
        return Finding(
            NAME,
            False,
            f"nothing listens on {host}:{port} ({error.strerror})",
            "start Kafka, or correct SVC_KAFKA_BOOTSTRAP",
        )
    return None


def speaks_tls(host: str, port: int) -> bool:
    """True when the listener answers a TLS handshake, whoever signed its certificate."""
    lenient = ssl.create_default_context()
    lenient.check_hostname = False
    lenient.verify_mode = ssl.CERT_NONE
    with suppress(OSError), socket.create_connection((host, port), SECONDS) as plain:
        lenient.wrap_socket(plain, server_hostname=host).close()
        return True
    return False


def _tls(settings: KafkaSettings, host: str, port: int) -> Finding | None:
    """What is wrong with TLS, or None; a wrong choice between TLS and none included."""
    wanted, spoken = settings.kafka_security_protocol.endswith("SSL"), speaks_tls(host, port)
    if wanted != spoken:
        said = f"{host}:{port} {'speaks' if spoken else 'does not speak'} TLS"
        choice = "SSL or SASL_SSL" if spoken else "PLAINTEXT or SASL_PLAINTEXT"
        return Finding(NAME, False, said, f"set SVC_KAFKA_SECURITY_PROTOCOL to {choice}")
    if not wanted:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.kafka_ca_file or None)
    except OSError as error:
        return Finding(NAME, False, f"the CA file can't be read: {error}", "correct SVC_KAFKA_CA_FILE")
    try:
        with (
            socket.create_connection((host, port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        mend = "name the CA that signed the broker's certificate in SVC_KAFKA_CA_FILE"
        return Finding(
            NAME, False, f"the certificate of {host}:{port} is refused: {error.verify_message}", mend
        )
    except OSError as error:
        return Finding(NAME, False, f"TLS with {host}:{port} fails: {error}", "look at the broker's log")


async def _topics(settings: KafkaSettings) -> set[str]:
    """The topics that these credentials can see. Raises KafkaError or OSError."""
    client = AIOKafkaAdminClient(**client_options(settings), request_timeout_ms=int(SECONDS * 1000))
    try:
        await client.start()
        return set(await client.list_topics())
    finally:
        await client.close()


def _missing(settings: KafkaSettings, found: set[str]) -> list[str]:
    specs = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, 1)
    return [spec.name for spec in specs if spec.name not in found]


def _signed_in(settings: KafkaSettings, address: str) -> list[Finding]:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        found = asyncio.run(asyncio.wait_for(_topics(settings), 2 * SECONDS))
    except (KafkaError, OSError) as error:
        sasl = settings.kafka_security_protocol.startswith("SASL_")
        mend = (
            "check SVC_KAFKA_USERNAME, SVC_KAFKA_PASSWORD and SVC_KAFKA_SASL_MECHANISM"
            if sasl
            else "the listener may want credentials: set SVC_KAFKA_SECURITY_PROTOCOL to a SASL_ protocol"
        )
        return [Finding(NAME, False, f"{address} does not let us in: {error or type(error).__name__}", mend)]
    reached = Finding(NAME, True, f"{address} answers")
    if missing := _missing(settings, found):
        return [reached, Finding("topics", False, f"missing: {', '.join(missing)}", "run `svc migrate`")]
    return [reached, Finding("topics", True, "all are there")]


def check_kafka(settings: KafkaSettings) -> list[Finding]:
    """Everything between us and our topics; the first trouble ends the list."""
    if not settings.kafka_bootstrap:
        mend = "start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP"
        return [Finding(NAME, False, "no address is known", mend)]
    troubles: list[Finding] = []
    for address in settings.kafka_bootstrap.split(","):
        host, port = split_address(address)
        trouble = _connection(host, port) or _tls(settings, host, port)
        if trouble is None:
            return [*troubles, *_signed_in(settings, address)]
        troubles.append(trouble)
    return troubles
