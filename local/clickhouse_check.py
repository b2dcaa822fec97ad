"""`svc doctor` and ClickHouse: tells apart a wrong name, nothing that listens, credentials, a missing database and an old schema."""

import socket
import ssl
import urllib.error
import urllib.request

from local.checks import Finding
from schemas.settings import BadSetting
from storage.client import ClickHouseError, open_client, parse_url
from storage.migrate import pending

SECONDS = 5.0
NAME = "clickhouse"
MEND_URL = "correct SVC_CLICKHOUSE_URL"
OLDEST = (25, 8)
CODES = {
    "516": ("the user or password is refused", "correct the user and password in SVC_CLICKHOUSE_URL"),
    "194": ("the password is missing", "put the password into SVC_CLICKHOUSE_URL"),
    "81": ("the database does not exist", "create it, or correct the last part of SVC_CLICKHOUSE_URL"),
    "497": ("the user lacks a right", "grant what docs/operating.md lists"),
}


class Refused(Exception):
    """The server answered with an error: its code and its first line."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def ask(url: str, sql: str) -> str:
    """The answer of one statement as TSV. Raises Refused, BadSetting, or OSError where there is no server."""
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
        raise Refused(code, said[0]) from None


def _unreachable(place: str, error: OSError) -> Finding:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, socket.gaierror):
        return Finding(NAME, False, f"the name in {place} is unknown", MEND_URL)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Finding(
            NAME,
            False,
            f"the certificate of {place} is refused: {reason.verify_message}",
            "add its CA to the system's",
        )
    if isinstance(reason, ssl.SSLError):
        return Finding(
            NAME, False, f"{place} does not speak TLS", f"{MEND_URL}: http instead of https, or another port"
        )
    return Finding(NAME, False, f"nothing answers on {place} ({reason})", f"start ClickHouse, or {MEND_URL}")


def _version(text: str) -> Finding:
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < OLDEST:
        return Finding(
            NAME, False, f"version {text} is too old", f"upgrade to {'.'.join(map(str, OLDEST))} or newer"
        )
    return Finding(NAME, True, f"version {text} answers")


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


def check_clickhouse(url: str) -> list[Finding]:
    """Everything between us and our tables; the first trouble ends the list."""
    if not url:
        mend = "start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL"
        return [Finding(NAME, False, "no address is known", mend)]
    try:
        found = _version(ask(url, "SELECT version()"))
        return [found, _schema(url)] if found.ok else [found]
    except BadSetting as error:
        return [Finding(NAME, False, str(error), MEND_URL)]
    except Refused as refused:
        said, mend = CODES.get(refused.code, (str(refused), "look at the server's log"))
        return [Finding(NAME, False, said, mend)]
    except ClickHouseError as error:
        return [Finding("schema", False, str(error).splitlines()[0], "look at the server's log")]
    except OSError as error:
        return [_unreachable(f"{parse_url(url).host}:{parse_url(url).port}", error)]
