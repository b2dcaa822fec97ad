"""Grants of analysts: only the views, within limits, optionally of some projects only.

The views read the tables as their definer. Row policies on the tables bind a dedicated definer, and thereby
every reader of the views; with policies on the views themselves, conditions of a query could see hidden rows
first (docs/decisions/reading.md). The statements are for a server's administrator, since the service's own
user can't create users. The local server has the same grants in its `users.xml`; a test compares the two.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from storage.tables.analyst_views import TABLES, VIEWS
from storage.tables.migrations.migrate import migrations, statements

ROLE: Final = "svc_analyst"
_GIB: Final = 1 << 30
_VIEW: Final = re.compile(r"CREATE (?:OR REPLACE VIEW|VIEW IF NOT EXISTS) (analyst_\w+)\n")


class ProfileLimit(Struct, frozen=True):
    """A setting of the analysts' profile.

    It has a value, and the range that a query may set it to (None: not at all).
    """

    name: str
    value: int
    choice: tuple[int, int] | None = None


LIMITS: Final = (
    ProfileLimit("readonly", 2),
    ProfileLimit("max_memory_usage", _GIB, (1, _GIB)),
    ProfileLimit("max_memory_usage_for_user", 2 * _GIB),
    # Grafana's client sends its own limit, by default 60 seconds, and five more.
    ProfileLimit("max_execution_time", 30, (1, 90)),
    ProfileLimit("max_threads", 2, (1, 2)),
    ProfileLimit("max_concurrent_queries_for_user", 16),
    ProfileLimit("max_rows_to_read", 2_000_000_000, (1, 2_000_000_000)),
    ProfileLimit("max_result_rows", 1_000_000, (1, 1_000_000)),
    ProfileLimit("max_result_bytes", _GIB, (1, _GIB)),
    ProfileLimit("max_temporary_data_on_disk_size_for_user", 4 * _GIB),
    ProfileLimit("max_bytes_before_external_group_by", _GIB // 2, (1, _GIB)),
    ProfileLimit("max_bytes_before_external_sort", _GIB // 2, (1, _GIB)),
    ProfileLimit("allow_ddl", 0),
    ProfileLimit("log_queries", 1),
)
FIXED: Final = (
    *(
        "format_schema",
        "format_schema_source",
        "output_format_schema",
        "format_template_row",
        "format_template_resultset",
    ),
    *("format_avro_schema_registry_url", "input_format_record_errors_file_path", "url_base"),
)
"""Settings that no query may change: each names a file or an address that an input or output format reads or
writes."""


class Analyst(Struct, frozen=True):
    """A user of the server.

    `password_sha256` is in hexadecimal; `projects` are the visible projects, empty for all.
    """

    name: str
    password_sha256: str
    projects: tuple[int, ...] = ()


def rows_of(projects: Sequence[int]) -> str:
    """The condition on a table's rows."""
    return f"project_id IN ({', '.join(str(project) for project in sorted(projects))})"


def role_statements(database: str) -> Iterator[str]:
    """Role and profile of analysts who see all projects; idempotent."""
    settings = ",\n    ".join([*map(_setting, LIMITS), *(f"{name} CONST" for name in FIXED)])
    yield f"CREATE SETTINGS PROFILE IF NOT EXISTS {ROLE}"
    yield f"ALTER SETTINGS PROFILE {ROLE} SETTINGS\n    {settings}"
    yield f"CREATE ROLE IF NOT EXISTS {ROLE}"
    yield from (f"GRANT SELECT ON {_quoted(database)}.{view} TO {ROLE}" for view in VIEWS)


def analyst_statements(database: str, analyst: Analyst) -> Iterator[str]:
    """One analyst; idempotent, also with other projects.

    To be run in the service's database, after `role_statements`. An analyst with `projects` gets the same
    views in a separate database, `<database>_<name>`.
    """
    name = _quoted(analyst.name)
    home = f"{database}_{analyst.name}" if analyst.projects else database
    secret = f"IDENTIFIED WITH sha256_hash BY '{analyst.password_sha256}'"
    yield f"CREATE USER IF NOT EXISTS {name} {secret}"
    yield f"ALTER USER {name} {secret} DEFAULT DATABASE {_quoted(home)} SETTINGS PROFILE '{ROLE}'"
    if analyst.projects:
        yield f"REVOKE ALL ON *.* FROM {name}"
        yield f"REVOKE {ROLE} FROM {name}"
        yield from _own_database(database, home, analyst)
    else:
        yield f"GRANT {ROLE} TO {name}"
        yield f"ALTER USER {name} DEFAULT ROLE {ROLE}"


def view_statements(home: str, definer: str) -> Iterator[str]:
    """The views in another database, read as `definer`.

    The tables are in the database that the statements run in.
    """
    for view, definition in _definitions().items():
        statement = f"CREATE OR REPLACE VIEW {_quoted(home)}.{view}\n{definition}"
        yield statement.replace("DEFINER = CURRENT_USER", f"DEFINER = {_quoted(definer)}", 1)


def _definitions() -> dict[str, str]:
    """The definition of each view, after its name, from the last migration that creates it."""
    definitions = {}
    for migration in migrations():
        for statement in statements(migration.sql):
            match = _VIEW.match(statement)
            if match and match[1] in VIEWS:
                definitions[match[1]] = statement[match.end() :]
    return definitions


def _own_database(database: str, home: str, analyst: Analyst) -> Iterator[str]:
    definer = f"{home}_views"
    yield f"CREATE USER IF NOT EXISTS {_quoted(definer)} HOST NONE"
    for table in (*TABLES, "issue_of"):
        yield f"GRANT SELECT ON {_quoted(database)}.{table} TO {_quoted(definer)}"
    for table in TABLES:
        policy = f"{_quoted(definer)} ON {_quoted(database)}.{table}"
        rows = rows_of(analyst.projects)
        yield f"CREATE ROW POLICY OR REPLACE {policy} USING {rows} TO {_quoted(definer)}"
    yield f"CREATE DATABASE IF NOT EXISTS {_quoted(home)}"
    yield from view_statements(home, definer)
    yield from (f"GRANT SELECT ON {_quoted(home)}.{view} TO {_quoted(analyst.name)}" for view in VIEWS)


def _setting(limit: ProfileLimit) -> str:
    if limit.choice is None:
        return f"{limit.name} = {limit.value} CONST"
    minimum, maximum = limit.choice
    return f"{limit.name} = {limit.value} MIN {minimum} MAX {maximum}"


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
