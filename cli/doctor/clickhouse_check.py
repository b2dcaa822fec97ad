"""The checks of `svc doctor` on ClickHouse: connection, version, rights, schema."""

import socket
import ssl
import urllib.error
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from cli.doctor.basic_checks import Finding
from schemas.errors import BadSetting
from storage.client import ClickHouseError, open_client, parse_url
from storage.errors import AnotherServer, ServerRefused
from storage.rights import (
    ANSWER_SECONDS,
    Rights,
    as_grants,
    ask,
    lacking,
    operator_rights,
    read_only,
    reader_rights,
    writer_rights,
)
from storage.server_identity import check_server
from storage.shards import ONLY
from storage.tables.migrations.migrate import pending

NAME = "clickhouse"
MIN_VERSION = (25, 8)
WRITER, READER = "SVC_CLICKHOUSE_URL", "SVC_CLICKHOUSE_READER_URL"
CODES = {
    "516": ("the user or password is refused", "correct the user and password in {variable}"),
    "194": ("the password is missing", "put the password into {variable}"),
    "81": ("the database does not exist", "run `svc migrate`, or correct the last part of {variable}"),
    "497": ("the user lacks a right", "grant the rights in docs/operate/permissions.md"),
}


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
    if isinstance(error, TimeoutError):
        # The client wraps a timeout of the connection, not one of the answer.
        detail = f"{address} takes connections and doesn't answer within {ANSWER_SECONDS:.0f} seconds"
        return Finding(name, False, detail, "see the server's log and load")
    return Finding(name, False, f"nothing answers at {address} ({reason})", f"start ClickHouse, or {correct}")


def _version(name: str, text: str) -> Finding:
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < MIN_VERSION:
        minimum = ".".join(map(str, MIN_VERSION))
        return Finding(name, False, f"version {text} is too old", f"upgrade to {minimum} or newer")
    return Finding(name, True, f"version {text} answers")


def _data(url: str, shard: str) -> Finding:
    """Whether the schema is whole, and the server that of the data."""
    client = open_client(url)
    try:
        missing = pending(client)
    finally:
        client.close()
    if missing:
        names = ", ".join(f"{migration.number:04} {migration.name}" for migration in missing)
        return Finding("schema", False, f"not applied: {names}", "run `svc migrate`")
    try:
        check_server(url, shard)
    except AnotherServer as error:
        detail, _, fix = str(error).partition(": ")
        return Finding("server", False, detail, fix)
    return Finding("schema", True, f"every migration is applied; {WRITER} leads to the server of the data")


def _rights(role: str, required: Rights, url: str, *, spread: bool) -> Finding:
    name, address, run = f"clickhouse rights: {role}", parse_url(url), partial(ask, url)
    if required is not reader_rights and read_only(run):
        detail = f"the user {address.user} is read-only (its setting `readonly`)"
        return Finding(name, False, detail, f"set {WRITER} to a user who may write; this one is for {READER}")
    missing = lacking(list(required(address.database, spread, address.replicas > 1)), run)
    if missing:
        detail = "missing: " + ", ".join(map(str, missing))
        return Finding(name, False, detail, as_grants(missing, address.user))
    return Finding(name, True, f"{address.user} has all rights")


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
        return [_unreachable(name, variable, address.host_port, error)]
    return findings


def why_refused(url: str, variable: str = WRITER) -> Finding | None:
    """Why the address in `variable` is unusable; None if a first query succeeds."""
    findings = _check(NAME, variable, url, lambda: iter(()))
    return next((finding for finding in findings if not finding.ok), None)


ROLES: Mapping[str, Rights] = {
    "processors": reader_rights,
    "writer": writer_rights,
    "operator": operator_rights,
}
"""The rights of the processes whose user is in SVC_CLICKHOUSE_URL."""


def check_clickhouse(url: str, processes: Collection[str] = tuple(ROLES), shard: str = ONLY) -> list[Finding]:
    """Check the server, the rights of the processes and the schema behind an address.

    The address is SVC_CLICKHOUSE_URL, or one of SVC_CLICKHOUSE_SHARDS.
    """
    if not url:
        fix = f"start `svc up` on this data directory, or set {WRITER}"
        return [Finding(NAME, False, "no address is known", fix)]

    def further() -> Iterator[Finding]:
        for role, required in ROLES.items():
            if role in processes:
                yield _rights(role, required, url, spread=shard != ONLY)
        yield _data(url, shard)

    findings = _check(NAME, WRITER, url, further)
    return findings if shard == ONLY else [replace(f, name=f"{f.name} {shard}") for f in findings]


def check_reader(reader_url: str, url: str, *, spread: bool = False) -> list[Finding]:
    """Check the user of dashboard and notify, who may be read-only.

    The user is that of SVC_CLICKHOUSE_READER_URL, or of SVC_CLICKHOUSE_URL. With `spread` there are several
    servers.
    """
    own_url, variable = (reader_url, READER) if reader_url else (url, WRITER)
    if not own_url:
        return []

    def further() -> Iterator[Finding]:
        own, other = parse_url(own_url).database, parse_url(url).database if url else ""
        if other and own != other:
            detail = f"{READER} names the database {own}, {WRITER} the database {other}"
            yield Finding("reader database", False, detail, "name the same database in both")
        yield _rights("reader", reader_rights, own_url, spread=spread)

    return _check("clickhouse reader", variable, own_url, further)
