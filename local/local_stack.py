"""The children of `svc up`: their order and environment."""

import errno
import secrets
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from local.child import Child
from local.clickhouse.local_clickhouse import LocalClickHouse
from local.discovery import overlaid
from local.kafka.container import choose_kafka
from local.local_errors import StartError
from local.ports import bind_error, stored_ports
from local.private_file import write_private
from local.readiness import is_ready, local_url, unready_parts
from schemas.environment import load
from schemas.settings import (
    AnalystSettings,
    DashboardSettings,
    EdgeSettings,
    NotifySettings,
    ProcessorsSettings,
    WriterSettings,
)

SERVER_SECONDS = 300.0
"""Time for a server's recovery after a kill."""
PROCESS_SECONDS = 300.0
"""Time for progress of our process that restores its state; one that cannot start exits much sooner."""
BACKGROUND_NICE = 10
"""On one machine, processing and storage yield to the edge, Kafka and the dashboard, which answer clients. They don't
yield to other sessions (`local.process_groups.spawn`)."""
PASSWORD_FILE = "admin-password"  # noqa: S105 - a file's name


def is_given(environ: Mapping[str, str], name: str) -> bool:
    """Whether the environment has the setting or its `_FILE` variant."""
    return bool(environ.get(name) or environ.get(f"{name}_FILE"))


def admin_password_file(data_dir: Path) -> Path:
    """The file with the admin password, created once (mode 600)."""
    file = data_dir / PASSWORD_FILE
    if not file.exists():
        write_private(file, secrets.token_urlsafe(12) + "\n")
    return file


class Stack:
    """The children on `data_dir`, and the variables to reach them. The constructor creates folders and passwords."""

    def __init__(self, data_dir: Path, environ: Mapping[str, str], edge_workers: int | None = None) -> None:
        self.data_dir = data_dir
        self._given = overlaid(environ, {"SVC_DATA_DIR": str(data_dir)})
        self._servers: list[Child] = []
        base = self._health_ports()
        if not is_given(environ, "SVC_ADMIN_PASSWORD"):
            base["SVC_ADMIN_PASSWORD_FILE"] = str(admin_password_file(data_dir))
        if edge_workers is not None:
            self._given = overlaid(self._given, {"SVC_EDGE_WORKERS": str(edge_workers)})
        base |= self._kafka() | self._clickhouse()
        self.environ = overlaid(base, self._given)
        self.edge = load(EdgeSettings, self.environ)
        self.dashboard = load(DashboardSettings, self.environ)
        self.ingest_url = local_url(self.edge.ingest_host, self.edge.ingest_port)
        self.dashboard_url = local_url(self.dashboard.dashboard_host, self.dashboard.dashboard_port)
        # For the dashboard's pages, for links in messages, and for commands in other shells.
        addresses = {"SVC_INGEST_URL": self.ingest_url, "SVC_DASHBOARD_URL": self.dashboard_url}
        self.environ = overlaid(addresses, self.environ)

    @property
    def variables(self) -> dict[str, str]:
        """The SVC_* variables with absolute file names, for commands in other shells."""
        ours = {name: value for name, value in self.environ.items() if name.startswith("SVC_")}
        files = {
            name: str(Path(ours[name]).resolve()) for name in ours if name.endswith("_FILE") and ours[name]
        }
        return overlaid(ours | files, {"SVC_INGEST_URL": self.ingest_url})

    def check_ports(self) -> None:
        """Raise StartError for a port on which nothing can listen, naming the setting to correct."""
        for name, host, port in (
            ("SVC_INGEST_PORT", self.edge.ingest_host, self.edge.ingest_port),
            ("SVC_DASHBOARD_PORT", self.dashboard.dashboard_host, self.dashboard.dashboard_port),
        ):
            error = bind_error(port, host)
            if error is None:
                continue
            if error.errno == errno.EADDRINUSE:
                raise StartError(
                    f"port {port} of {host} is in use: stop its listener, or set {name} to another port"
                )
            variable = name if error.errno == errno.EACCES else name.replace("_PORT", "_HOST")
            raise StartError(f"can't listen on port {port} of {host} ({error.strerror}): correct {variable}")

    def children(self) -> list[Child]:
        """All children in start order."""
        processors, writer = load(ProcessorsSettings, self.environ), load(WriterSettings, self.environ)
        notify = load(NotifySettings, self.environ)
        notifying = self._ours("notify", local_url(notify.health_host, notify.notify_health_port))
        return [
            *self._servers,
            self._ours("migrate", once=True),
            self._ours("edge", self.ingest_url),
            self._ours(
                "processors",
                local_url(processors.health_host, processors.processors_health_port),
            ),
            self._ours("writer", local_url(writer.health_host, writer.writer_health_port)),
            self._ours("dashboard", self.dashboard_url),
            # It costs memory, and without channels sends nothing.
            *([notifying] if notify.notify_channels else []),
        ]

    def _log(self, name: str) -> Path:
        return self.data_dir / "log" / f"{name}.log"

    def _ours(self, name: str, address: str = "", *, once: bool = False) -> Child:
        command = [sys.executable, "-P", "-m", "cli", name]
        instance = secrets.token_hex(8)
        ready: Callable[[], bool] = partial(is_ready, address, instance)
        return Child(
            name,
            lambda: command,
            self._log(name),
            ready,
            overlaid(self.environ, {"SVC_INSTANCE": instance}),
            once=once,
            start_seconds=PROCESS_SECONDS,
            progress=partial(unready_parts, address, instance),
            nice=BACKGROUND_NICE if name in {"processors", "writer", "notify"} else 0,
        )

    def _health_ports(self) -> dict[str, str]:
        names = {name: f"SVC_{name.upper()}_HEALTH_PORT" for name in ("processors", "writer", "notify")}
        ports = stored_ports(self.data_dir / "ports.json", tuple(names))
        return {variable: str(ports[name]) for name, variable in names.items()}

    def _kafka(self) -> dict[str, str]:
        if is_given(self._given, "SVC_KAFKA_BOOTSTRAP"):
            return {}
        kafka = choose_kafka(self.data_dir / "kafka", self.data_dir / "cache")
        self._servers.append(
            Child(
                "kafka",
                kafka.prepare,
                self._log("kafka"),
                kafka.ready,
                start_seconds=SERVER_SECONDS,
                data=self.data_dir / "kafka",
            )
        )
        return {"SVC_KAFKA_BOOTSTRAP": kafka.bootstrap}

    def _clickhouse(self) -> dict[str, str]:
        if is_given(self._given, "SVC_CLICKHOUSE_URL") or is_given(self._given, "SVC_CLICKHOUSE_SHARDS"):
            return {}
        analyst = load(AnalystSettings, self._given)
        server = LocalClickHouse(
            self.data_dir / "clickhouse",
            analyst_password=analyst.analyst_password,
            analyst_projects=analyst.projects,
        )
        self._servers.append(
            Child(
                "clickhouse",
                server.prepare,
                self._log("clickhouse"),
                server.ready,
                start_seconds=SERVER_SECONDS,
                data=server.directory,
                nice=BACKGROUND_NICE,
            )
        )
        return {"SVC_CLICKHOUSE_URL": server.url(), "SVC_CLICKHOUSE_READER_URL": server.url("reader")}
