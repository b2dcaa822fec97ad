"""The statements about packs of payloads, on the model of ClickHouse."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from storage.exactly_once import filling, missing_rows, unpacking
from storage.tables.packs import unpacked
from tests.simulation.clickhouse_tables import Event
from tests.simulation.clickhouse_work import made_of

if TYPE_CHECKING:
    from tests.simulation.clickhouse import Server
    from tests.simulation.clickhouse_work import Work

_OF_PACKS: Final = re.compile(r"project_id = (\d+) AND pack IN \(((?:toUInt128\('\d+'\)(?:, )?)+)\)")
_OF_EVENT: Final = re.compile(r"project_id = (\d+) AND id = toUInt128\('(\d+)'\)")


def statements(server: "Server") -> "Mapping[str, Callable[..., Work]]":
    """The statements that always have the same text."""
    return {
        unpacking.CONTENT: partial(_content, server),
        unpacking.MEMBERS: partial(_members, server),
        filling.STORED_ALONE: partial(_stored_alone, server),
    }


def patterns(server: "Server") -> "list[tuple[re.Pattern[str], Callable[..., Work]]]":
    """The statements that name rows in their text."""
    return [
        (made_of(unpacking.PACKS), partial(_packs, server)),
        (made_of(missing_rows.FORGET_SOME), partial(_delete, server)),
    ]


def pack_of(row: Event) -> int:
    """The column `pack` of a row of `payloads`."""
    return int.from_bytes(row.column("pack"), "little")


def payloads(server: "Server") -> dict[tuple[int, int], dict[bytes, bytes]]:
    """The content of each stored pack, by its project and number."""
    return {
        (row.project, row.number): unpacked(row.column("payload"))
        for row in server.tables["payloads"].rows
        if pack_of(row) == row.number
    }


def of_packs(sql: str) -> Callable[[Event], bool] | None:
    """Whether a row is of the packs that a statement names, if it names any."""
    found = _OF_PACKS.search(sql)
    if found is None:
        return None
    project, packs = int(found[1]), set(map(int, re.findall(r"'(\d+)'", found[2])))
    return lambda row: row.project == project and pack_of(row) in packs


def _content(server: "Server", parameters: Mapping[str, Any], _: Any) -> "Work":
    yield 0.001
    return [
        [row.column("payload")]
        for row in server.tables["payloads"].rows
        if row.project == parameters["project"]
        and row.number in parameters["packs"]
        and pack_of(row) == row.number
    ]


def _members(server: "Server", parameters: Mapping[str, Any], external: Any) -> "Work":
    yield 0.001
    data = external.files[0].data
    wanted = {data[at : at + 16] for at in range(0, len(data), 16)}
    return [
        [row.number, int(row.block.rows["ts"][row.row].value), row.retention]
        for row in server.tables["payloads"].rows
        if row.project == parameters["project"] and row.id in wanted and pack_of(row) in parameters["packs"]
    ]


def _stored_alone(server: "Server", _: Any, external: Any) -> "Work":
    yield 0.001
    wanted = server.wanted(external)
    return [
        [row.project, row.number, row.retention]
        for row in server.tables["payloads"].rows
        if (row.project, row.id) in wanted and not pack_of(row)
    ]


def _packs(server: "Server", sql: str, _: Any, external: Any) -> "Work":
    yield 0.001
    rows = list(server.tables["payloads"].rows)
    if external is not None and "HAVING" in sql:
        wanted = server.wanted(external)
        rows = [row for row in rows if (row.project, row.id) in wanted]
    if "HAVING count() > 1" in sql:
        times = Counter((row.project, row.id) for row in rows)
        found = [row for row in rows if times[row.project, row.id] > 1]
    elif named := _OF_EVENT.search(sql):
        found = [row for row in rows if (row.project, row.number) == (int(named[1]), int(named[2]))]
    else:
        meets = server.erasing.condition("payloads", sql, None)
        found = [row for row in rows if meets(row)]
    return [[*pair] for pair in sorted({(row.project, pack_of(row)) for row in found if pack_of(row)})]


def _delete(server: "Server", sql: str, *_: Any) -> "Work":
    yield 0.001
    goes, parts = of_packs(sql), server.tables["payloads"].parts
    assert goes is not None
    for part, rows in parts.items():
        parts[part] = [row for row in rows if not goes(row)]
    return []
