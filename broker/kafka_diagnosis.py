"""Diagnoses why Kafka is unreachable: host name, port, TLS or credentials.

aiokafka raises the same "Unable to bootstrap" for all of them, so one connection is opened step by step here.
"""

import asyncio
import socket
import ssl
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    InvalidTimestampError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest
from msgspec import Struct

from broker.access_token import AccessToken, TokenRefused
from schemas.addresses import host_port
from schemas.settings import KafkaSettings

SECONDS: Final = 5.0
_PORT: Final = 9092
_CREDENTIALS: Final = "check SVC_KAFKA_USERNAME and SVC_KAFKA_PASSWORD"


class Unreachable(Struct, frozen=True):
    """Why a broker can't be used, and how to fix it, for people.

    `denied`: it responds, but refuses the credentials.
    """

    message: str
    fix: str
    denied: bool = False

    def __str__(self) -> str:
        return f"{self.message}: {self.fix}"


def reason_of(error: BaseException) -> str:
    """Why an error ended a process, for people."""
    if isinstance(error, InvalidTimestampError):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return f"Kafka refuses records with this machine's time, {now}, as too far ahead or behind: correct the clock"
    return f"{type(error).__name__}: {str(error) or _line_of(error)}"


def _line_of(error: BaseException) -> str:
    """The line that raised an error without a message, outside asyncio."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/asyncio/" not in frame.filename
    ]
    return f"in {frames[-1].filename}:{frames[-1].lineno}" if frames else "no reason is known"


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """The security arguments of every aiokafka client and connection."""
    options: dict[str, Any] = {"security_protocol": settings.kafka_security_protocol}
    if settings.kafka_security_protocol.startswith("SASL_"):
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism
        if settings.kafka_sasl_mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = AccessToken(settings)
        else:
            options["sasl_plain_username"] = settings.kafka_username
            options["sasl_plain_password"] = settings.kafka_password
    if settings.kafka_security_protocol.endswith("SSL"):
        options["ssl_context"] = _tls_context(settings)
    return options


def _tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.kafka_ca_file or None)
    if settings.kafka_certificate_file:
        context.load_cert_chain(settings.kafka_certificate_file, settings.kafka_key_file or None)
    return context


def addresses(settings: KafkaSettings) -> list[str]:
    """The configured bootstrap brokers."""
    return [address.strip() for address in settings.kafka_bootstrap.split(",") if address.strip()]


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[::1]:port`."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdecimal():
        return address.strip("[] "), _PORT
    return host.strip("[]"), int(port)


def why_unreachable(settings: KafkaSettings) -> Unreachable | None:
    """Why the first broker is unreachable; None if any broker accepts the connection.

    Blocks, for seconds if nothing responds.
    """
    reasons = []
    for address in addresses(settings):
        reason = why_refused(settings, address)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def why_refused(settings: KafkaSettings, address: str) -> Unreachable | None:
    """Why one broker is unreachable, or None."""
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
            f"{host_port(host, port)} does not respond",
            "check for a firewall in between, or correct SVC_KAFKA_BOOTSTRAP",
        )
    except OSError as error:
        return Unreachable(
            f"nothing listens on {host_port(host, port)} ({error.strerror})",
            "start Kafka, or correct SVC_KAFKA_BOOTSTRAP",
        )
    return None


def speaks_tls(host: str, port: int) -> bool:
    """Whether the listener completes a TLS handshake; its certificate isn't verified.

    Raises TimeoutError if it takes the connection and doesn't answer; Kafka without TLS closes it at once.
    """
    lenient = ssl.create_default_context()
    lenient.check_hostname = False
    lenient.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), SECONDS) as plain:
            lenient.wrap_socket(plain, server_hostname=host).close()
            return True
    except TimeoutError:
        raise
    except OSError:
        return False


def _tls(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    """The TLS problem, or None; includes a wrong choice between TLS and plaintext."""
    configured = settings.kafka_security_protocol.endswith("SSL")
    try:
        spoken = speaks_tls(host, port)
    except TimeoutError:
        return Unreachable(
            f"{host_port(host, port)} takes connections and doesn't answer within {SECONDS:.0f} seconds",
            "see the broker's log and load",
        )
    if configured != spoken:
        choice = "SSL or SASL_SSL" if spoken else "PLAINTEXT or SASL_PLAINTEXT"
        return Unreachable(
            f"{host_port(host, port)} {'speaks' if spoken else 'does not speak'} TLS",
            f"set SVC_KAFKA_SECURITY_PROTOCOL to {choice}",
        )
    return _certificate(settings, host, port) if configured else None


def _certificate(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    try:
        context = _tls_context(settings)
    except OSError as error:
        return Unreachable(
            f"the files for TLS can't be read: {error}",
            "correct SVC_KAFKA_CA_FILE, SVC_KAFKA_CERTIFICATE_FILE and SVC_KAFKA_KEY_FILE",
        )
    try:
        with (
            socket.create_connection((host, port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return Unreachable(
            f"the certificate of {host_port(host, port)} is refused: {error.verify_message}",
            "name the CA that signed the broker's certificate in SVC_KAFKA_CA_FILE",
        )
    except OSError as error:
        return Unreachable(f"TLS with {host_port(host, port)} fails: {error}", "check the broker's log")


async def _session(settings: KafkaSettings, host: str, port: int) -> Unreachable | None:
    """The problem with the credentials, or with the first request after them.

    None if the broker accepts both.
    """
    try:
        connection = await create_conn(
            host, port, request_timeout_ms=int(SECONDS * 1000), **security_options(settings)
        )
        try:
            answer = await connection.send(MetadataRequest([]))
            if not answer.brokers:
                # aiokafka doesn't notice that a broker refuses a token: the next response is empty.
                raise IllegalSaslStateError
        finally:
            await connection.close()
    except (KafkaError, OSError, ValueError) as error:
        return explained(error, settings, host_port(host, port))
    return None


def explained(error: Exception, settings: KafkaSettings, address: str) -> Unreachable:
    """The meaning of a connection error if host name, port and TLS are known to be correct. Pure."""
    sasl = settings.kafka_security_protocol.startswith("SASL_")
    if sasl and settings.kafka_sasl_mechanism == "OAUTHBEARER":
        refusal = _token_refusal(error, settings, address)
        if refusal is not None:
            return refusal
    if isinstance(error, UnsupportedSaslMechanismError):
        return Unreachable(
            f"{address} does not offer {settings.kafka_sasl_mechanism}",
            "set SVC_KAFKA_SASL_MECHANISM to a mechanism that the listener offers",
            denied=True,
        )
    if isinstance(error, IllegalSaslStateError):
        return Unreachable(
            f"{address} expects no credentials",
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
            f"{address} closes the connection: it expects credentials, or is not a Kafka broker",
            "set SVC_KAFKA_SECURITY_PROTOCOL to a SASL_ protocol, name a certificate in"
            " SVC_KAFKA_CERTIFICATE_FILE, or correct SVC_KAFKA_BOOTSTRAP",
        )
    return Unreachable(
        f"{address} does not respond like Kafka ({str(error) or type(error).__name__})",
        "check the broker's log",
    )


def _token_refusal(error: Exception, settings: KafkaSettings, address: str) -> Unreachable | None:
    if isinstance(error, TokenRefused):
        return Unreachable(str(error.args[0]), f"check SVC_KAFKA_TOKEN_URL, or {_CREDENTIALS}", denied=True)
    if isinstance(error, IllegalSaslStateError | KafkaConnectionError):
        return Unreachable(
            f"{address} refuses the token of {settings.kafka_username!r}",
            "check the issuer, audience and scope that the broker expects of tokens",
            denied=True,
        )
    return None
