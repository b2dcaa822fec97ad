"""What our two users may do on ClickHouse at least (docs/operate/permissions.md has the same statements), and what is missing of it."""

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
    """A privilege on something, as both CHECK GRANT and GRANT want it."""

    privilege: str
    on: str

    def __str__(self) -> str:
        return f"{self.privilege} ON {self.on}"


def writer_rights(database: str) -> Iterator[Right]:
    """What the user of SVC_CLICKHOUSE_URL needs: it migrates, writes, repairs and erases."""
    yield from (Right(privilege, f"{database}.*") for privilege in ON_DATABASE)
    yield from (Right("SELECT", f"system.{table}") for table in ON_SYSTEM)
    yield from (Right("TABLE ENGINE", engine) for engine in ENGINES)


def reader_rights(database: str) -> Iterator[Right]:
    """What the user of SVC_CLICKHOUSE_READER_URL needs."""
    return (Right(privilege, f"{database}.*") for privilege in READER_ON_DATABASE)


def lacking(rights: Iterator[Right], ask: Callable[[str], str]) -> list[Right]:
    """Those of the rights that the server doesn't grant; `ask` runs one statement. CHECK GRANT changes nothing."""
    return [right for right in rights if ask(f"CHECK GRANT {right}") != "1"]


def read_only(ask: Callable[[str], str]) -> bool:
    """Whether the user's settings refuse writes, whatever its grants say."""
    return ask("SELECT getSetting('readonly')") != "0"


def as_grants(rights: Sequence[Right], user: str) -> str:
    """The statements with which an administrator gives the rights."""
    return " ".join(f"GRANT {right} TO {user};" for right in rights)
