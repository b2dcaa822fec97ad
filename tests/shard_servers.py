"""Three ClickHouse servers that know each other as the shards of a cluster."""

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local.clickhouse.local_clickhouse import LocalClickHouse
from local.ports import free_port
from tests.granted_clickhouse import READER

CLUSTER = "shards"
_SHARD = """<shard><internal_replication>true</internal_replication>
      <replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"""
_CLUSTER = "<remote_servers><{name}><secret>{secret}</secret>{shards}</{name}></remote_servers>"
_GRANTS = """<query>GRANT TABLE ENGINE ON Distributed, TABLE ENGINE ON Merge</query>
        <query>GRANT SET DEFINER ON analyst_views</query>"""


class ShardServer(LocalClickHouse):
    """One server of a cluster; `ports` are those of all for their native protocol, `number` says which is its own.

    `users` are further ones of `users.xml`.
    """

    def __init__(self, directory: Path, number: int, ports: Sequence[int], users: str = "") -> None:
        super().__init__(directory, memory=1 << 30)
        self.users = users
        self._number = number
        self._ports = ports

    def prepare(self) -> list[str]:
        command = super().prepare()
        shards = "".join(_SHARD.format(port=port) for port in self._ports)
        more = f"<tcp_port>{self._ports[self._number]}</tcp_port>" + _CLUSTER.format(
            name=CLUSTER, secret="of the tests", shards=shards
        )
        self._edit("config.xml", r"</clickhouse>\s*$", more + "</clickhouse>")
        self._edit("users.xml", "<queries>2</queries>", "<queries>3</queries>")
        self._edit("users.xml", r"<query>GRANT SET DEFINER ON analyst_views</query>", _GRANTS)
        self._edit("users.xml", "</users>", self.users + "</users>")
        self._edit("users.xml", "</profiles>", READER + "</profiles>")
        return command

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and does nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _edit(self, name: str, old: str, new: str) -> None:
        file = self.directory / name
        text, times = re.subn(old, new, file.read_text())
        assert times == 1
        file.write_text(text)


@contextmanager
def shard_servers(folder: Path, count: int, users: str = "") -> Iterator[list[ShardServer]]:
    """Running servers, in the order of their shards."""
    servers = servers_of(folder, count, users)
    with ExitStack() as stack:
        for server in servers:
            server.start(120)
            stack.callback(server.stop)
        yield servers


def servers_of(folder: Path, count: int, users: str = "") -> list[ShardServer]:
    """The servers, which are not started."""
    ports = [free_port() for _ in range(count)]
    for number in range(count):
        (folder / f"shard{number}").mkdir(parents=True, exist_ok=True)
    return [ShardServer(folder / f"shard{number}", number, ports, users) for number in range(count)]
