"""The required rights of our two ClickHouse users (see docs/operate/permissions.md), and the missing ones."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

ON_DATABASE: Final = (
    *("SHOW", "SELECT", "INSERT", "ALTER TABLE", "ALTER VIEW", "CREATE TABLE", "CREATE VIEW"),
    *("DROP TABLE", "DROP VIEW", "TRUNCATE", "OPTIMIZE"),
)
ON_SYSTEM: Final = ("columns", "databases", "detached_parts", "mutations", "parts", "processes", "tables")
ENGINES: Final = ("MergeTree", "AggregatingMergeTree", "ReplacingMergeTree", "Null")
READER_ON_DATABASE: Final = ("SELECT", "dictGet")


class Right(Struct, frozen=True):
    """A privilege and its object, in the syntax of CHECK GRANT and GRANT."""

    privilege: str
    on: str

    def __str__(self) -> str:
        return f"{self.privilege} ON {self.on}"


def writer_rights(database: str) -> Iterator[Right]:
    """The rights of the user of SVC_CLICKHOUSE_URL, who migrates, writes, repairs and erases."""
    yield from (Right(privilege, f"{database}.*") for privilege in ON_DATABASE)
    yield from (Right("SELECT", f"system.{table}") for table in ON_SYSTEM)
    yield from (Right("TABLE ENGINE", engine) for engine in ENGINES)


def reader_rights(database: str) -> Iterator[Right]:
    """The rights of the user of SVC_CLICKHOUSE_READER_URL."""
    return (Right(privilege, f"{database}.*") for privilege in READER_ON_DATABASE)


def lacking(rights: Iterator[Right], ask: Callable[[str], str]) -> list[Right]:
    """The rights that are not granted; `ask` runs one statement. CHECK GRANT changes nothing."""
    return [right for right in rights if ask(f"CHECK GRANT {right}") != "1"]


def read_only(ask: Callable[[str], str]) -> bool:
    """Whether the user's settings refuse writes despite its grants."""
    return ask("SELECT getSetting('readonly')") != "0"


def as_grants(rights: Sequence[Right], user: str) -> str:
    """The statements with which an administrator grants the rights."""
    return " ".join(f"GRANT {right} TO {user};" for right in rights)
