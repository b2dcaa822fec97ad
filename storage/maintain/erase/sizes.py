"""Counts of an erasure: its rows, and the bytes of whole tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from storage.client import Client

ROWS: Final = "SELECT count() FROM {table} WHERE {where}"
BYTES: Final = """
    SELECT table, sum(bytes_on_disk) FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)} GROUP BY table"""


class TableReport(Struct, frozen=True, rename="camel"):
    """Rows of the erasure in one table, and bytes of the whole table, before and after.

    For a rollup: the rows that counted the user's events; remaining rows count other events.
    """

    table: str
    rows_before: int
    rows_after: int
    bytes_before: int
    bytes_after: int


class Sizes(Struct, frozen=True):
    """Rows and bytes by table at one moment."""

    rows: dict[str, int]
    bytes: dict[str, int]


def measure(client: Client, wheres: Mapping[str, str], external: ExternalData | None = None) -> Sizes:
    """Count the rows that meet each table's condition, and each table's bytes. Raises ClickHouseError."""
    rows = {
        table: int(
            client.query(
                ROWS.format(table=table, where=where),
                external_data=external,
            ).result_rows[0][0]
        )
        for table, where in wheres.items()
    }
    return Sizes(rows, table_bytes(client, wheres))


def table_bytes(client: Client, tables: Iterable[str]) -> dict[str, int]:
    """The bytes of whole tables on disk. Raises ClickHouseError."""
    sizes = client.query(BYTES, parameters={"tables": list(tables)}).result_rows
    return {str(table): int(size) for table, size in sizes}


def compared(tables: Iterable[str], before: Sizes, after: Sizes) -> list[TableReport]:
    """A report of the sizes before and after."""
    return [
        TableReport(
            table=table,
            rows_before=before.rows.get(table, 0),
            rows_after=after.rows.get(table, 0),
            bytes_before=before.bytes.get(table, 0),
            bytes_after=after.bytes.get(table, 0),
        )
        for table in tables
    ]


def added(reports: Sequence[Sequence[TableReport]]) -> list[TableReport]:
    """One report of several servers'."""
    return [
        TableReport(
            table=tables[0].table,
            rows_before=sum(table.rows_before for table in tables),
            rows_after=sum(table.rows_after for table in tables),
            bytes_before=sum(table.bytes_before for table in tables),
            bytes_after=sum(table.bytes_after for table in tables),
        )
        for tables in zip(*reports, strict=True)
    ]
