"""Why Kafka can't be reached: the name, the port, TLS or the credentials.

aiokafka logs these and raises the same "Unable to bootstrap" for all of them. Here one connection is made by hand.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Any, Final

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest
from msgspec import Struct

from schemas.settings import KafkaSettings

SECONDS: Final = 5.0
_CREDENTIALS: Final = "check SVC_KAFKA_USERNAME and SVC_KAFKA_PASSWORD"


class Unreachable(Struct, frozen=True):
    """Why a broker can't be used, in a sentence for people, and how to mend it. `denied`: it is there and wants other credentials."""

    said: str
    mend: str
    denied: bool = False

    def __str__(self) -> str:
        return f"{self.said}: {self.mend}"


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments with which every aiokafka client and connection of ours gets in."""
    options: dict[str, Any] = {"security_protocol": settings.kafka_security_protocol}
    if settings.kafka_security_protocol.startswith("SASL_"):
        options |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": settings.kafka_password,
        }
    if settings.kafka_security_protocol.endswith("SSL"):
        options["ssl_context"] = ssl.create_default_context(cafile=settings.kafka_ca_file or None)
    return options


def addresses(settings: KafkaSettings) -> list[str]:
    """The brokers that the settings name."""
    return [address.strip() for address in settings.kafka_bootstrap.split(",") if address.strip()]


def split_address(address: str, default_port: int = 9092) -> tuple[str, int]:
    """Host and port of one `host:port`, of `[::1]:port` too."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdecimal():
        return address.strip("[] "), default_port
    return host.strip("[]"), int(port)


def why_unreachable(settings: KafkaSettings) -> Unreachable | None:
    """What keeps us out of the first broker, or None where any lets us in. Blocks, for some seconds where nothing answers."""
    reasons = []
    for address in addresses(settings):
        reason = why_refused(settings, address)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def why_refused(settings: KafkaSettings, address: str) -> Unreachable | None:
    """What keeps us out of one broker, or None."""
    host, port = split_address(address)
    return (
        _connection(host, port) or _tls(settings, host, port) or asyncio.run(_session(settings, host, port))
    )


def _connection(host: str, port: int) -> Unreachable | None:
    try:
        socket.create_connection((host, port), SECONDS).close()
    except socket.gaierror:
        return Unreachable(f"the name {host} is unknown", "correct SVC_KAFKA_BOOTSTRAP")
    except TimeoutError:
        return Unreachable(
            f"{host}:{port} does not answer", "look for a firewall on the way, or correct SVC_KAFKA_BOOTSTRAP"
        )
    except OSError as error:
        return Unreachable(
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


def _tls(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    """What is wrong with TLS, or None; a wrong choice between TLS and none included."""
    wanted, spoken = settings.kafka_security_protocol.endswith("SSL"), speaks_tls(host, port)
    if wanted != spoken:
        choice = "SSL or SASL_SSL" if spoken else "PLAINTEXT or SASL_PLAINTEXT"
        return Unreachable(
            f"{host}:{port} {'speaks' if spoken else 'does not speak'} TLS",
            f"set SVC_KAFKA_SECURITY_PROTOCOL to {choice}",
        )
    return _certificate(settings, host, port) if wanted else None


def _certificate(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    try:
        context = ssl.create_default_context(cafile=settings.kafka_ca_file or None)
    except OSError as error:
        return Unreachable(f"the CA file can't be read: {error}", "correct SVC_KAFKA_CA_FILE")
    try:
        with (
            socket.create_connection((host, port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return Unreachable(
            f"the certificate of {host}:{port} is refused: {error.verify_message}",
            "name the CA that signed the broker's certificate in SVC_KAFKA_CA_FILE",
        )
    except OSError as error:
        return Unreachable(f"TLS with {host}:{port} fails: {error}", "look at the broker's log")


async def _session(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    """What the broker answers to our credentials, and to the first request after them, or None."""
    try:
        connection = await create_conn(
            host, port, request_timeout_ms=int(SECONDS * 1000), **security_options(settings)
        )
        try:
            await connection.send(MetadataRequest([]))
        finally:
            connection.close()
    except (KafkaError, OSError, ValueError) as error:
        return explained(error, settings, f"{host}:{port}")
    return None


def explained(error: Exception, settings: KafkaSettings, address: str) -> Unreachable:
    """What an error of a connection means, where name, port and TLS are known to be right. Pure."""
    sasl = settings.kafka_security_protocol.startswith("SASL_")
    if isinstance(error, UnsupportedSaslMechanismError):
        return Unreachable(
            f"{address} does not offer {settings.kafka_sasl_mechanism}",
            "set SVC_KAFKA_SASL_MECHANISM to a mechanism that the listener offers",
            denied=True,
        )
    if isinstance(error, IllegalSaslStateError):
        return Unreachable(
            f"{address} wants no credentials",
            "set SVC_KAFKA_SECURITY_PROTOCOL to PLAINTEXT or SSL, or name a listener with SASL",
            denied=True,
        )
    if isinstance(error, SaslAuthenticationFailed) or (sasl and isinstance(error, ValueError)):
        return Unreachable(
            f"{address} refuses user {settings.kafka_username!r} or its password",
            _CREDENTIALS,
            denied=True,
        )
    if isinstance(error, KafkaConnectionError) and not sasl:
        return Unreachable(
            f"{address} closes the connection: it wants credentials, or is no Kafka broker",
            "set SVC_KAFKA_SECURITY_PROTOCOL to a SASL_ protocol, or correct SVC_KAFKA_BOOTSTRAP",
        )
    return Unreachable(
        f"{address} does not answer as Kafka does ({error or type(error).__name__})",
        "look at the broker's log",
    )
