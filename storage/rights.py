"""The rights that our ClickHouse users need, and those that a server refuses.

docs/operate/permissions.md has the same rights.
"""

import asyncio
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from storage.client import parse_url
from storage.errors import ServerRefused
from storage.shards import WHOLE

WRITER_ON_DATABASE: Final = ("SELECT", "INSERT", "ALTER DELETE")
WRITER_ON_SYSTEM: Final = ("databases", "detached_parts", "parts", "processes", "tables")
OPERATOR_ON_DATABASE: Final = (
    *("SHOW", "SELECT", "INSERT", "ALTER TABLE", "ALTER VIEW", "CREATE TABLE", "CREATE VIEW"),
    *("DROP TABLE", "DROP VIEW", "TRUNCATE", "OPTIMIZE"),
)
OPERATOR_ON_SYSTEM: Final = (*WRITER_ON_SYSTEM, "columns", "mutations")
OPERATOR_ON_WHOLE: Final = ("SELECT", "CREATE TABLE", "DROP TABLE")
ON_REPLICAS: Final = ("replicas", "zookeeper")
ENGINES: Final = ("MergeTree", "AggregatingMergeTree", "ReplacingMergeTree", "Null")
WHOLE_ENGINES: Final = ("Distributed", "Merge")
ANSWER_SECONDS: Final = 5.0


class Right(Struct, frozen=True):
    """A privilege and its object, in the syntax of CHECK GRANT and GRANT."""

    privilege: str
    on: str

    def __str__(self) -> str:
        return f"{self.privilege} ON {self.on}"


Rights = Callable[[str, bool, bool], Iterator[Right]]
"""The rights of a user on a server's database, whether it is one of several servers, and whether it has
replicas."""


def operator_rights(database: str, spread: bool = False, replicated: bool = False) -> Iterator[Right]:
    """The rights of the user who migrates, repairs and erases."""
    yield from (Right(privilege, f"{database}.*") for privilege in OPERATOR_ON_DATABASE)
    yield from (Right("SELECT", f"system.{table}") for table in OPERATOR_ON_SYSTEM)
    yield from (Right("TABLE ENGINE", engine) for engine in ENGINES)
    if replicated:
        yield from (Right("SELECT", f"system.{table}") for table in ON_REPLICAS)
        yield Right("SYSTEM SYNC REPLICA", f"{database}.*")
        yield from (Right("TABLE ENGINE", f"Replicated{engine}") for engine in ENGINES if engine != "Null")
    if spread:
        yield from (Right(privilege, f"{database}{WHOLE}.*") for privilege in OPERATOR_ON_WHOLE)
        yield from (Right("TABLE ENGINE", engine) for engine in WHOLE_ENGINES)


def writer_rights(database: str, spread: bool = False, replicated: bool = False) -> Iterator[Right]:
    """The rights of the writer's user."""
    yield from (Right(privilege, f"{database}.*") for privilege in WRITER_ON_DATABASE)
    yield from (Right("SELECT", f"system.{table}") for table in WRITER_ON_SYSTEM)
    if replicated:
        yield from (Right("SELECT", f"system.{table}") for table in ON_REPLICAS)
    if spread:
        yield Right("SELECT", f"{database}{WHOLE}.*")


def reader_rights(database: str, spread: bool = False, _replicated: bool = False) -> Iterator[Right]:
    """The rights of a user who only reads: that of dashboard, notify and processors."""
    yield Right("SELECT", f"{database}.*")
    if spread:
        yield Right("SELECT", f"{database}{WHOLE}.*")


def ask(url: str, sql: str) -> str:
    """Run one statement; returns TSV. Raises ServerRefused, BadSetting, or OSError if no server answers."""
    address = parse_url(url)
    request = urllib.request.Request(  # noqa: S310 - the operator's own address
        f"{address.scheme}://{address.host_port}/",
        data=sql.encode(),
        headers={
            "X-ClickHouse-User": address.user,
            "X-ClickHouse-Key": address.password,
            "X-ClickHouse-Database": address.database,
        },
    )
    try:
        context = ssl.create_default_context(cafile=address.ca_file) if address.scheme == "https" else None
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS, context=context) as response:  # noqa: S310
            text: bytes = response.read()
            return text.decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            code = error.headers.get("X-ClickHouse-Exception-Code", "")
            lines = error.read(500).decode(errors="replace").splitlines() or [str(error)]
        raise ServerRefused(code, lines[0]) from None


def lacking(rights: Sequence[Right], run: Callable[[str], str]) -> list[Right]:
    """The rights that are not granted; `run` runs one statement. CHECK GRANT changes nothing."""
    if run(f"CHECK GRANT {', '.join(map(str, rights))}") == "1":
        return []
    return [right for right in rights if run(f"CHECK GRANT {right}") != "1"]


def read_only(run: Callable[[str], str]) -> bool:
    """Whether the user's settings refuse writes despite its grants."""
    return run("SELECT getSetting('readonly')") != "0"


def as_grants(rights: Sequence[Right], user: str) -> str:
    """The statements with which an administrator grants the rights."""
    return " ".join(f"GRANT {right} TO {user};" for right in rights)


class ClickHouseRights:
    """Asks the servers for the missing rights of the users in `urls`: for `broker.startup`."""

    def __init__(self, urls: Sequence[str], rights: Rights, *, spread: bool) -> None:
        self._urls = urls
        self._rights = rights
        self._spread = spread

    async def __call__(self) -> list[str]:
        """The missing rights. Raises ServerRefused or OSError."""
        return list(map(str, await asyncio.to_thread(self._lacking)))

    def _lacking(self) -> list[Right]:
        return list(dict.fromkeys(chain.from_iterable(map(self._lacking_at, self._urls))))

    def _lacking_at(self, url: str) -> list[Right]:
        address = parse_url(url)
        own = address.database.removesuffix(WHOLE) if self._spread else address.database
        rights = self._rights(own, self._spread, address.replicas > 1)
        return lacking(list(rights), lambda sql: ask(url, sql))
