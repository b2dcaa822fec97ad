"""The statements about rows that are there twice, on the model of ClickHouse."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from storage.maintain.reconcile import duplicates
from tests.simulation.clickhouse_tables import Key

if TYPE_CHECKING:
    from tests.simulation.clickhouse import Server
    from tests.simulation.clickhouse_work import Work

_DELETED: Final = re.compile(r"_part = '(\w+)' AND _part_offset IN \(([0-9, ]+)\)")


def statements(server: "Server") -> "Mapping[str, Callable[..., Work]]":
    """The statements that find them, by table."""
    return {
        duplicates.SURPLUS.format(table=name, twice=_twice(name)): _surplus(server, name)
        for name in duplicates.TABLES
    }


def _twice(name: str) -> str:
    return duplicates.TWICE.format(table=name, ids=duplicates.IDS_AT_ONCE)


def _surplus(server: "Server", name: str) -> "Callable[..., Work]":
    def surplus(*_: Any) -> "Work":
        yield 0.002
        known: set[Key] = set()
        rows = []
        for part, events in server.tables[name].parts.items():
            for offset, event in enumerate(events):
                key = event.project, event.id
                if key in known:
                    rows.append(["all", part, offset, event.project, event.day])
                known.add(key)
        return rows

    return surplus


def delete(server: "Server", sql: str, *_: Any) -> "Work":
    """Delete rows by part and offset, which gives the part another name."""
    yield 0.002
    table = server.tables[sql.split()[2]]
    [(part, numbers)] = _DELETED.findall(sql)
    offsets = set(map(int, numbers.split(",")))
    events = table.parts.pop(part, None)
    table.blocks += 1
    if events is not None:
        table.parts[f"{part}_1"] = [event for n, event in enumerate(events) if n not in offsets]
    return []


def forget_payload(server: "Server", parameters: Mapping[str, Any], _: Any) -> "Work":
    """Delete the payloads of one event that is not stored."""
    yield 0.001
    key = parameters["project"], parameters["id"].to_bytes(16, "little")
    parts = server.tables["payloads"].parts
    if all((event.project, event.id) != key for event in server.tables["events"].rows):
        for part, events in parts.items():
            parts[part] = [event for event in events if (event.project, event.id) != key]
    return []
