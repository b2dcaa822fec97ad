"""The analysts' views for the reference, from the migrations that create them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_MIGRATIONS: Final = Path(__file__).parents[2] / "storage/tables/migrations"
_VIEW: Final = re.compile(
    r"^CREATE VIEW IF NOT EXISTS (analyst_\w+)\n\(\n(.*?)\n\)\n.*?^COMMENT '(.*?)';$",
    re.DOTALL | re.MULTILINE,
)
_COLUMN: Final = re.compile(r"    (\w+) \S.* COMMENT '(.*?)',?")
_STATES: Final = "_states"
_SUMS: Final = re.compile(r"_(day|hour)(_states)?$")
_OF_ONE_VIEW: Final = re.compile(r"; they do not add up: .*| that carry the tag with this value")


def analyst_views() -> Iterator[str]:
    """The columns of each view, and a table of all views of sums."""
    views = {
        name: (_columns(columns), comment)
        for file in sorted(_MIGRATIONS.glob("*_analyst*.sql"))
        for name, columns, comment in _VIEW.findall(file.read_text("utf-8"))
    }
    for name, (columns, comment) in views.items():
        if not _SUMS.search(name):
            yield from (f"### {name}", "", f"{_text(comment)}.", "", *_list(columns), "")
    yield from _sums({name: columns for name, (columns, _) in views.items() if _SUMS.search(name)})


def _sums(views: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    yield "### Sums of analyst_events"
    yield ""
    yield "[Add up the rows of a key](analyze/connect.md#count-correctly), but merge users in the views with `_states`."
    yield ""
    yield "| view | a row for | figures |"
    yield "| --- | --- | --- |"
    for name, columns in views.items():
        if not name.endswith(_STATES):
            both = ", ".join(f"`{one}`" for one in (name, name + _STATES) if one in views)
            names = [column for column, _ in columns]
            key = names.index("`events`")
            yield f"| {both} | {', '.join(names[:key])} | {', '.join(names[key:])} |"
    yield ""
    yield from _list(
        dict.fromkeys(
            (
                f"{column} in `{_STATES}`" if meaning.startswith("State of") else column,
                _OF_ONE_VIEW.sub("", meaning),
            )
            for columns in views.values()
            for column, meaning in columns
        )
    )
    yield ""


def _list(columns: Iterable[tuple[str, str]]) -> Iterator[str]:
    for column, meaning in columns:
        yield f"- {column}: {meaning}"


def _columns(lines: str) -> list[tuple[str, str]]:
    rows = []
    for line in lines.splitlines():
        column = _COLUMN.fullmatch(line)
        assert column, line
        if column[1] != "project_id":
            rows.append((f"`{column[1]}`", _text(column[2])))
    return rows


def _text(literal: str) -> str:
    return literal.replace("''", "'")
