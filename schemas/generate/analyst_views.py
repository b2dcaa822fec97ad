"""The analysts' views for the reference, from the migration that creates them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MIGRATION: Final = Path(__file__).parents[2] / "storage/tables/migrations/0005_analysts.sql"
_VIEW: Final = re.compile(
    r"^CREATE VIEW IF NOT EXISTS (analyst_\w+)\n\(\n(.*?)\n\)\n.*?^COMMENT '(.*?)';$",
    re.DOTALL | re.MULTILINE,
)
_COLUMN: Final = re.compile(r"    (\w+) (\S.*) COMMENT '(.*?)',?")
_STATES: Final = "_states"


def analyst_views() -> Iterator[str]:
    """A table of columns for each view; one with states differs from its plain twin by the users."""
    views = {
        name: (columns, comment) for name, columns, comment in _VIEW.findall(_MIGRATION.read_text("utf-8"))
    }
    for name, (columns, comment) in views.items():
        if name.endswith(_STATES):
            continue
        twin = views.get(name + _STATES)
        yield f"### {name}" + (f", {name}{_STATES}" if twin else "")
        yield ""
        yield f"{_text(comment)}."
        yield ""
        yield "| column | type | meaning |"
        yield "| --- | --- | --- |"
        for column, kind, meaning in _columns(columns):
            yield f"| `{column}` | `{kind}` | {meaning} |"
        if twin:
            plain = _columns(columns)
            for column, kind, meaning in [row for row in _columns(twin[0]) if row not in plain]:
                yield f"| `{column}` of `{name}{_STATES}` | `{kind}` | {meaning} |"
        yield ""


def _columns(lines: str) -> list[tuple[str, str, str]]:
    rows = []
    for line in lines.splitlines():
        column = _COLUMN.fullmatch(line)
        assert column, line
        if column[1] != "project_id":
            rows.append((column[1], column[2], _text(column[3])))
    return rows


def _text(literal: str) -> str:
    return literal.replace("''", "'")
