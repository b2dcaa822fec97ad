"""ClickHouse on this machine: the engine of the PyPI package chdb-core as a child process with an HTTP port."""

import hashlib
import importlib.util
import json
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Literal
from urllib.parse import quote

from local.clickhouse.insert_tokens import prune_tokens
from local.disk_space import require_space
from local.local_errors import MissingProgram, StartError
from local.local_server import LocalServer
from local.ports import stored_ports
from local.private_file import write_private
from storage.tables.analyst_grants import rows_of
from storage.tables.analyst_views import TABLES

User = Literal["svc", "reader", "analyst"]
USERS: tuple[User, ...] = ("svc", "reader", "analyst")
DATABASE = "svc"
PORTS, PASSWORDS = "ports.json", "passwords.json"
TEMPLATES = Path(__file__).with_name("config")
CHILD = Path(__file__).with_name("engine_process.py")
CHDB_MISSING = (
    "the local ClickHouse needs the PyPI package chdb-core: "
    "install the extra `local` (pip install 'svc-service[local]'), "
    "or name a running ClickHouse in SVC_CLICKHOUSE_URL"
)


def fill(template: str, **values: object) -> str:
    """Fill a configuration template; raises KeyError for a missing value."""
    return Template((TEMPLATES / template).read_text()).substitute(values)


def analyst_rows(projects: Sequence[int]) -> str:
    """The part of `users.xml` that limits analysts to the rows of these projects; empty for no projects."""
    if not projects:
        return ""
    tables = "".join(f"<{table}><filter>{rows_of(projects)}</filter></{table}>" for table in TABLES)
    return f"\n      <databases><{DATABASE}>{tables}</{DATABASE}></databases>"


def address_of(user: User, password: str, port: int, database: str = DATABASE) -> str:
    """The address of the local server in the form of SVC_CLICKHOUSE_URL."""
    return f"http://{user}:{quote(password, safe='')}@127.0.0.1:{port}/{database}"


def stored_url(directory: Path, user: User, password: str = "") -> str:
    """The stored address of the server in `directory`; changes nothing and doesn't contact the server.

    Raises FileNotFoundError if there never was a server.
    """
    port = json.loads((directory / PORTS).read_text())["http"]
    password = password or json.loads((directory / PASSWORDS).read_text())[user]
    return address_of(user, password, port)


class LocalClickHouse(LocalServer):
    """A server whose data, port, passwords and configuration live in `directory`.

    `memory` (whole server) and `query_memory` (one query) are bytes. `analyst_password` replaces the
    generated one of the user `analyst`, who sees `analyst_projects` or, if empty, every project. The
    constructor replaces the stored port if it is in use: construct it only to start the server, never while
    it runs.
    """

    def __init__(
        self,
        directory: Path,
        memory: int = 4 << 30,
        query_memory: int = 1 << 30,
        analyst_password: str = "",
        analyst_projects: Sequence[int] = (),
    ) -> None:
        super().__init__("ClickHouse", directory, directory.resolve() / "log" / "stderr.log")
        self.memory = memory
        self.query_memory = query_memory
        self.analyst_projects = analyst_projects
        (self.directory / "log").mkdir(parents=True, exist_ok=True)
        self._port = stored_ports(self.directory / PORTS, ("http",))["http"]
        self._passwords = self._make_passwords() | ({"analyst": analyst_password} if analyst_password else {})
        self._has_database = False

    def url(self, user: User = "svc", database: str = DATABASE) -> str:
        """The address in the form of SVC_CLICKHOUSE_URL."""
        return address_of(user, self._passwords[user], self._port, database)

    def prepare(self) -> list[str]:
        """Repair the files that a kill may have left, write the configuration, and return the server's command.

        Raises NoDiskSpace or MissingProgram.
        """
        if importlib.util.find_spec("chdb") is None:
            raise MissingProgram(CHDB_MISSING)
        require_space("ClickHouse", self.directory)
        prune_tokens(self.directory)
        self._has_database = False
        sums = {user: hashlib.sha256(word.encode()).hexdigest() for user, word in self._passwords.items()}
        limits = {
            "query_memory": self.query_memory,
            "user_memory": 2 * self.query_memory,
            "reader_memory": 2 * self.query_memory,
            "spill": self.query_memory // 2,
        }
        analysts = {
            "analyst_views": hashlib.sha256(secrets.token_bytes()).hexdigest(),
            "analyst_rows": analyst_rows(self.analyst_projects),
        }
        users = fill("users.xml", database=DATABASE, **limits, **sums, **analysts)
        write_private(self.directory / "users.xml", users)
        # It replaces the engine's function, which lets any user read any file.
        (self.directory / "functions").mkdir(exist_ok=True)
        write_private(self.directory / "functions" / "function_file.sql", fill("function_file.sql"))
        config = fill("config.xml", directory=self.directory, port=self._port, memory=self.memory)
        write_private(self.directory / "config.xml", config)
        return [sys.executable, "-P", str(CHILD), str(self.directory)]

    def ready(self) -> bool:
        """True when the server answers; the first call after a start creates our database."""
        self._has_database = self._has_database or self._runs(
            f"CREATE DATABASE IF NOT EXISTS {DATABASE} ENGINE = Atomic"
        )
        return self._has_database and self._runs("SELECT 1")

    def _runs(self, sql: str) -> bool:
        """True if our user's statement succeeds, false if the server doesn't answer. Raises StartError."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/",
            data=sql.encode(),
            headers={"X-ClickHouse-User": "svc", "X-ClickHouse-Key": self._passwords["svc"]},
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - an http address of our own
                return bool(answer.status == 200)
        except urllib.error.HTTPError as refused:
            raise StartError(
                f"ClickHouse on port {self._port} refused its own user: {refused.read()[:500]!r}"
            ) from None
        except OSError:
            return False

    def _make_passwords(self) -> dict[User, str]:
        file = self.directory / PASSWORDS
        stored: dict[User, str] = json.loads(file.read_text()) if file.exists() else {}
        passwords = {user: stored.get(user) or secrets.token_urlsafe(18) for user in USERS}
        if passwords != stored:
            write_private(file, json.dumps(passwords) + "\n")
        return passwords
