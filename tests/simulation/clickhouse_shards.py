"""The models of several ClickHouse servers: which is whose, and the database over all of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from storage.shards import WHOLE
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_tables import WINDOW
from tests.simulation.clickhouse_work import Work
from tests.simulation.world import World

_APART_SECONDS: Final = 0.002
"""The longest time between the reads of a query on one server and the next."""


class Whole:
    """The database over all servers, on one of them.

    Rows of events are read from all servers, and tables that every server has from this one.
    """

    def __init__(self, servers: Sequence[Server], own: int) -> None:
        self.world = servers[own].world
        self._servers = servers
        self._own = servers[own]

    @property
    def is_up(self) -> bool:
        """Whether it answers: it needs all."""
        return all(server.is_up for server in self._servers)

    @property
    def life(self) -> int:
        """How often one of the servers has died."""
        return sum(server.life for server in self._servers)

    @property
    def frozen_until(self) -> float:
        """When the last that is frozen goes on."""
        return max(server.frozen_until for server in self._servers)

    @property
    def lag(self) -> float:
        """That of the slowest."""
        return max(server.lag for server in self._servers)

    def is_unsteady(self) -> bool:
        """Whether connections to one of them are lost."""
        return any(server.is_unsteady() for server in self._servers)

    def admits(self, _: Mapping[str, Any]) -> bool:
        """It has no sessions."""
        return True

    def renew(self, _: Mapping[str, Any]) -> None:
        """It has no sessions."""

    def query(self, sql: str, parameters: Mapping[str, Any], external: Any) -> Work:
        """A statement on the tables that are spread and those that each server has.

        The servers are read one after the other: no fault stops them all.
        """
        shown, left = self._empty(), list(self._servers)
        self.world.random.shuffle(left)
        for server in left:
            shown.add(server)
            yield self.world.random.uniform(0.0, _APART_SECONDS)
        return (yield from shown.query(sql, parameters, external))

    def now(self) -> Server:
        """Its rows at this moment, without any request."""
        shown = self._empty()
        for server in self._servers:
            shown.add(server)
        return shown

    def _empty(self) -> Server:
        """It without rows of events."""
        shown = Server(self.world)
        shown.share(self._own)
        return shown


def servers_of(world: World, count: int, window: int = WINDOW) -> list[Server]:
    """The servers in their order."""
    if count == 1:
        return [Server(world, window)]
    return [Server(world, window, f"ClickHouse {number + 1}") for number in range(count)]


def urls_of(count: int) -> tuple[str, ...]:
    """Their addresses."""
    return tuple(f"http://u:p@c{number + 1}:1/d" for number in range(count))


def at(servers: Sequence[Server], host: str, database: str) -> Server | Whole:
    """The server behind an address."""
    number = int(host.removeprefix("c")) - 1
    return Whole(servers, number) if database.endswith(WHOLE) else servers[number]
