"""What analysts may do on a ClickHouse server: views and nothing else, within limits, and where wanted of some projects only.

The views read the tables as their definer. Where that is a user of its own, row policies on the tables bind it, and so whoever asks
through the views; policies on the views themselves would let conditions of a query look at hidden rows first
(docs/decisions/analysts.md). Statements here are for a server's administrator: our own user can't make users. The local server says
the same in its `users.xml`, and a test compares the two.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from storage.analysts.views import TABLES, VIEWS
from storage.migrations.migrate import migrations

ROLE: Final = "svc_analyst"
_GIB: Final = 1 << 30
_VIEW: Final = re.compile(r"CREATE (?:OR REPLACE VIEW|VIEW IF NOT EXISTS) (analyst_\w+)\n")


class ProfileLimit(Struct, frozen=True):
    """A setting of the analysts' profile: its value, and the range in which a query may choose another (None: it may not)."""

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
"""Settings that no query may choose: each names a file or an address that a format of input or output reads or writes."""


class Analyst(Struct, frozen=True):
    """A user of the server. `password_sha256` is in hexadecimal; `projects` are all that it may see, none named: every project."""

    name: str
    password_sha256: str
    projects: tuple[int, ...] = ()


def rows_of(projects: Sequence[int]) -> str:
    """The condition on a table's rows."""
    return f"project_id IN ({', '.join(str(project) for project in sorted(projects))})"


def role_statements(database: str) -> Iterator[str]:
    """Role and profile of analysts who see every project; repeatable."""
    settings = ",\n    ".join([*map(_setting, LIMITS), *(f"{name} CONST" for name in FIXED)])
    yield f"CREATE SETTINGS PROFILE IF NOT EXISTS {ROLE}"
    yield f"ALTER SETTINGS PROFILE {ROLE} SETTINGS\n    {settings}"
    yield f"CREATE ROLE IF NOT EXISTS {ROLE}"
    yield from (f"GRANT SELECT ON {_quoted(database)}.{view} TO {ROLE}" for view in VIEWS)


def analyst_statements(database: str, analyst: Analyst) -> Iterator[str]:
    """One analyst; repeatable, also with other projects. They are to run in our database, after `role_statements`.

    One with `projects` finds the same views in a database of its own, `<database>_<name>`.
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
    """The views in another database, read as `definer`; the tables are those of the database that the statements run in."""
    for view, definition in _definitions().items():
        again = f"CREATE OR REPLACE VIEW {_quoted(home)}.{view}\n{definition}"
        yield again.replace("DEFINER = CURRENT_USER", f"DEFINER = {_quoted(definer)}", 1)


def _definitions() -> dict[str, str]:
    """What each view is, after its name: as the last migration that speaks of it says."""
    found = {}
    for migration in migrations():
        for statement in migration.statements():
            match = _VIEW.match(statement)
            if match and match[1] in VIEWS:
                found[match[1]] = statement[match.end() :]
    return found


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
    least, most = limit.choice
    return f"{limit.name} = {limit.value} MIN {least} MAX {most}"


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
