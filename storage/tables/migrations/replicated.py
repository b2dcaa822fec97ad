"""The statements of the migrations for a server with replicas. Pure."""

import re
from typing import Final

WINDOW_SECONDS: Final = 14 * 86_400
"""How long a table remembers the token of a block, in addition to how many:
`storage.exactly_once.server_state` counts on half of it."""
_PATH: Final = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
_ENGINE: Final = re.compile(r"^ENGINE = (\w*MergeTree)(?:\((.*)\))?$", re.MULTILINE)
_WINDOW: Final = re.compile(r"non_replicated_deduplication_window = (\d+)")
_END: Final = re.compile(r"^(SETTINGS |COMMENT ')|\Z", re.MULTILINE)
_NAMED: Final = re.compile(
    r"^((?:CREATE (?:OR REPLACE )?(?:DATABASE|TABLE|VIEW|MATERIALIZED VIEW)(?: IF NOT EXISTS)?|ALTER TABLE) [\w.]+)"
)


def replicated(statement: str) -> str:
    """A statement of a migration, whose table is replicated.

    The table's path in Keeper is made of the servers' macros `shard` and `replica`. A replicated table
    forgets tokens by their age too, and has them by default.
    """
    if not _ENGINE.search(statement):
        return statement
    found = _WINDOW.search(statement)
    window = (
        f"replicated_deduplication_window = {found[1] if found else 0},"
        f" replicated_deduplication_window_seconds = {WINDOW_SECONDS}"
    )
    if found:
        statement = _WINDOW.sub(window, statement)
    else:
        statement = _END.sub(lambda end: _with_setting(window, end[0]), statement, count=1)
    return _ENGINE.sub(
        lambda match: f"ENGINE = Replicated{match[1]}({', '.join(filter(None, (_PATH, match[2])))})",
        statement,
    )


def on_cluster(statement: str, cluster: str) -> str:
    """A statement that each server of the cluster runs, if one is named.

    Inserted rows are replicated anyway.
    """
    return (
        statement
        if not cluster
        else _NAMED.sub(lambda match: f"{match[1]} ON CLUSTER '{cluster}'", statement, count=1)
    )


def _with_setting(setting: str, end: str) -> str:
    if end.startswith("SETTINGS"):
        return f"{end}{setting}, "
    return f"SETTINGS {setting}\n{end}" if end else f"\nSETTINGS {setting}"
