"""`svc doctor` and ClickHouse: what keeps us out, and what we find inside: version, rights, schema, payload dictionaries."""

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial

from cli.doctor.checks import Finding
from cli.doctor.clickhouse_rights import as_grants, lacking, read_only, reader_rights, writer_rights
from schemas.errors import BadSetting
from storage.client import Address, ClickHouseError, open_client, parse_url
from storage.migrations.migrate import pending

SECONDS = 5.0
NAME = "clickhouse"
OLDEST = (25, 8)
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
    """The answer of one statement as TSV. Raises ServerRefused, BadSetting, or OSError where there is no server."""
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
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            text: bytes = answer.read()
            return text.decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            code = error.headers.get("X-ClickHouse-Exception-Code", "")
            said = error.read(500).decode(errors="replace").splitlines() or [str(error)]
        raise ServerRefused(code, said[0]) from None


def _unreachable(name: str, variable: str, place: str, error: OSError) -> Finding:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    correct = f"correct {variable}"
    if isinstance(reason, socket.gaierror):
        return Finding(name, False, f"the name in {place} is unknown", correct)
    if isinstance(reason, ssl.SSLCertVerificationError):
        said = f"the certificate of {place} is refused: {reason.verify_message}"
        return Finding(name, False, said, "add its CA to the system's")
    if isinstance(reason, ssl.SSLError):
        said = f"{place} does not speak TLS"
        return Finding(name, False, said, f"{correct}: http instead of https, or another port")
    return Finding(name, False, f"nothing answers on {place} ({reason})", f"start ClickHouse, or {correct}")


def _version(name: str, text: str) -> Finding:
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return Finding(name, False, f"version {text} is too old", f"upgrade to {oldest} or newer")
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


def _writer_rights(address: Address, asking: Callable[[str], str]) -> Finding:
    name = "clickhouse rights"
    if read_only(asking):
        said = f"the user {address.user} is read-only (its setting `readonly`)"
        return Finding(name, False, said, f"name a user who may write in {WRITER}; this one is for {READER}")
    missing = lacking(writer_rights(address.database), asking)
    if missing:
        said = "missing: " + ", ".join(map(str, missing))
        return Finding(name, False, said, as_grants(missing, address.user))
    return Finding(name, True, f"{address.user} may migrate, write, repair and erase")


def _reader_rights(address: Address, asking: Callable[[str], str]) -> Finding:
    name = "reader rights"
    missing = lacking(reader_rights(address.database), asking)
    if missing:
        said = "missing: " + ", ".join(map(str, missing))
        return Finding(name, False, said, as_grants(missing, address.user))
    return Finding(name, True, f"{address.user} may read")


def _look(name: str, variable: str, url: str, further: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The version that answers and then `further`, or the first trouble."""
    found: list[Finding] = []
    try:
        found.append(_version(name, ask(url, "SELECT version()")))
        if found[0].ok:
            found += further()
    except BadSetting as error:
        return [Finding(name, False, str(error).replace(WRITER, variable), f"correct {variable}")]
    except ServerRefused as refused:
        said, mend = CODES.get(refused.code, (str(refused), "look at the server's log"))
        found.append(Finding(name, False, said, mend.format(variable=variable)))
    except ClickHouseError as error:
        found.append(Finding("schema", False, str(error).splitlines()[0], "look at the server's log"))
    except OSError as error:
        address = parse_url(url)
        return [_unreachable(name, variable, f"{address.host}:{address.port}", error)]
    return found


def why_refused(url: str, variable: str = WRITER) -> Finding | None:
    """What keeps us out of ClickHouse by the address in `variable`, or None where a first question is answered."""
    found = _look(NAME, variable, url, lambda: iter(()))
    return next((finding for finding in found if not finding.ok), None)


def check_clickhouse(url: str) -> list[Finding]:
    """Everything between us and our tables, by SVC_CLICKHOUSE_URL."""
    if not url:
        mend = f"start `svc up` on this data directory, or set {WRITER}"
        return [Finding(NAME, False, "no address is known", mend)]

    def further() -> Iterator[Finding]:
        yield _writer_rights(parse_url(url), partial(ask, url))
        yield _schema(url)

    return _look(NAME, WRITER, url, further)


def check_reader(reader_url: str, url: str) -> list[Finding]:
    """The same for SVC_CLICKHOUSE_READER_URL, where it is set; a read-only user is what it is for."""
    if not reader_url:
        return []

    def further() -> Iterator[Finding]:
        own, other = parse_url(reader_url).database, parse_url(url).database if url else ""
        if other and own != other:
            said = f"{READER} names the database {own}, {WRITER} the database {other}"
            yield Finding("reader database", False, said, "name the same database in both")
        yield _reader_rights(parse_url(reader_url), partial(ask, reader_url))

    return _look("clickhouse reader", READER, reader_url, further)
