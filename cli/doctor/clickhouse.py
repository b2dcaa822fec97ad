"""The checks of `svc doctor` on ClickHouse: connection, version, rights, schema."""

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial

from cli.doctor.checks import Finding
from cli.doctor.clickhouse_rights import (
    Right,
    as_grants,
    lacking,
    read_only,
    reader_rights,
    writer_rights,
)
from schemas.errors import BadSetting
from storage.client import Address, ClickHouseError, open_client, parse_url
from storage.errors import AnotherServer
from storage.migrations.migrate import pending
from storage.server_identity import check_server

SECONDS = 5.0
NAME = "clickhouse"
MIN_VERSION = (25, 8)
WRITER, READER = "SVC_CLICKHOUSE_URL", "SVC_CLICKHOUSE_READER_URL"
CODES = {
    "516": ("the user or password is refused", "correct the user and password in {variable}"),
    "194": ("the password is missing", "put the password into {variable}"),
    "81": ("the database does not exist", "run `svc migrate`, or correct the last part of {variable}"),
    "497": ("the user lacks a right", "grant what docs/operate/permissions.md lists"),
}


class ServerRefused(Exception):
    """The server answered with an error: its code and its first line."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def ask(url: str, sql: str) -> str:
    """Run one statement; returns TSV. Raises ServerRefused, BadSetting, or OSError if no server answers."""
    address = parse_url(url)
    request = urllib.request.Request(  # noqa: S310 - the operator's own address
        f"{address.scheme}://{address.host}:{address.port}/",
        data=sql.encode(),
        headers={
            "X-ClickHouse-User": address.user,
            "X-ClickHouse-Key": address.password,
            "X-ClickHouse-Database": address.database,
        },
    )
    try:
        context = ssl.create_default_context(cafile=address.ca_file) if address.scheme == "https" else None
        with urllib.request.urlopen(request, timeout=SECONDS, context=context) as response:  # noqa: S310
            text: bytes = response.read()
            return text.decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            code = error.headers.get("X-ClickHouse-Exception-Code", "")
            lines = error.read(500).decode(errors="replace").splitlines() or [str(error)]
        raise ServerRefused(code, lines[0]) from None


def _unreachable(name: str, variable: str, address: str, error: OSError) -> Finding:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    correct = f"correct {variable}"
    if isinstance(reason, socket.gaierror):
        return Finding(name, False, f"the host name in {address} is unknown", correct)
    if isinstance(reason, ssl.SSLCertVerificationError):
        detail = f"the certificate of {address} is invalid: {reason.verify_message}"
        return Finding(name, False, detail, "set SVC_CLICKHOUSE_CA_FILE to its CA")
    if isinstance(reason, ssl.SSLError):
        detail = f"{address} does not use TLS"
        return Finding(name, False, detail, f"{correct}: http instead of https, or another port")
    return Finding(name, False, f"nothing answers at {address} ({reason})", f"start ClickHouse, or {correct}")


def _version(name: str, text: str) -> Finding:
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < MIN_VERSION:
        minimum = ".".join(map(str, MIN_VERSION))
        return Finding(name, False, f"version {text} is too old", f"upgrade to {minimum} or newer")
    return Finding(name, True, f"version {text} answers")


def _schema(url: str) -> Finding:
    client = open_client(url)
    try:
        missing = pending(client)
    finally:
        client.close()
    if missing:
        names = ", ".join(f"{migration.number:04} {migration.name}" for migration in missing)
        return Finding("schema", False, f"not applied: {names}", "run `svc migrate`")
    return Finding("schema", True, "every migration is applied")


def _server(url: str) -> Finding:
    try:
        check_server(url)
    except AnotherServer as error:
        detail, _, fix = str(error).partition(": ")
        return Finding("server", False, detail, fix)
    return Finding("server", True, f"every connection of {WRITER} leads to the server of the data")


def _writer_rights(address: Address, run: Callable[[str], str]) -> Finding:
    name = "clickhouse rights"
    if read_only(run):
        detail = f"the user {address.user} is read-only (its setting `readonly`)"
        fix = f"set {WRITER} to a user who may write; this one is for {READER}"
        return Finding(name, False, detail, fix)
    return _rights(name, writer_rights(address.database), address, run, "migrate, write, repair and erase")


def _rights(
    name: str, required: Iterator[Right], address: Address, run: Callable[[str], str], purpose: str
) -> Finding:
    missing = lacking(required, run)
    if missing:
        detail = "missing: " + ", ".join(map(str, missing))
        return Finding(name, False, detail, as_grants(missing, address.user))
    return Finding(name, True, f"{address.user} may {purpose}")


def _check(name: str, variable: str, url: str, further: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The server's version and then `further`, or the first problem."""
    findings: list[Finding] = []
    try:
        findings.append(_version(name, ask(url, "SELECT version()")))
        if findings[0].ok:
            findings += further()
    except BadSetting as error:
        return [Finding(name, False, str(error).replace(WRITER, variable), f"correct {variable}")]
    except ServerRefused as refused:
        detail, fix = CODES.get(refused.code, (str(refused), "see the server's log"))
        findings.append(Finding(name, False, detail, fix.format(variable=variable)))
    except ClickHouseError as error:
        findings.append(Finding("schema", False, str(error).splitlines()[0], "see the server's log"))
    except OSError as error:
        address = parse_url(url)
        return [_unreachable(name, variable, f"{address.host}:{address.port}", error)]
    return findings


def why_refused(url: str, variable: str = WRITER) -> Finding | None:
    """Why the address in `variable` is unusable; None if a first query succeeds."""
    findings = _check(NAME, variable, url, lambda: iter(()))
    return next((finding for finding in findings if not finding.ok), None)


def check_clickhouse(url: str) -> list[Finding]:
    """Check the server, the rights and the schema behind SVC_CLICKHOUSE_URL."""
    if not url:
        fix = f"start `svc up` on this data directory, or set {WRITER}"
        return [Finding(NAME, False, "no address is known", fix)]

    def further() -> Iterator[Finding]:
        yield _writer_rights(parse_url(url), partial(ask, url))
        schema = _schema(url)
        yield schema
        if schema.ok:
            yield _server(url)

    return _check(NAME, WRITER, url, further)


def check_reader(reader_url: str, url: str) -> list[Finding]:
    """Check SVC_CLICKHOUSE_READER_URL if it is set; its user may be read-only."""
    if not reader_url:
        return []

    def further() -> Iterator[Finding]:
        own, other = parse_url(reader_url).database, parse_url(url).database if url else ""
        if other and own != other:
            detail = f"{READER} names the database {own}, {WRITER} the database {other}"
            yield Finding("reader database", False, detail, "name the same database in both")
        yield _rights(
            "reader rights", reader_rights(own), parse_url(reader_url), partial(ask, reader_url), "read"
        )

    return _check("clickhouse reader", READER, reader_url, further)
