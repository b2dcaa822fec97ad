"""Several ClickHouse servers: partition p of the topics is stored on server p mod their number.

All copies of an id, and all that it adds to the counts, are on one server, so the guarantees of one server
hold for several. Issues, activity, outcomes and projects are on each. A second database on each server,
NAME_all, has the same tables over all servers: all readers read there (`storage/tables/migrations/whole.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from schemas.settings import ClickHouseSettings
from storage.client import Client, answers, open_client, parse_url
from storage.errors import ServerUnavailable

ONLY: Final = "1/1"
"""The place of a single server."""
WHOLE: Final = "_all"
"""Suffix of the name of the database over all servers."""
_ANSWER_SECONDS: Final = 5.0
WHOLE_SETTINGS: Final[Mapping[str, int | str]] = {
    # Each server has only a part of a subquery's rows.
    "distributed_product_mode": "global",
    # Of its replicas, one that is behind counts less.
    "max_replica_delay_for_distributed_queries": 2,
}
"""For queries over several servers."""


class Shard(Struct, frozen=True):
    """One of `count` servers; `number` counts from 0."""

    number: int
    count: int
    url: str

    def partitions_owned(self, partitions: Iterable[int]) -> set[int]:
        """The partitions that are stored on it."""
        return {partition for partition in partitions if partition % self.count == self.number}

    def named(self, part: str) -> str:
        """Name of a part of this server in health and log, with a number if there are several servers."""
        return part if self.count == 1 else f"{part}-{self.number + 1}"

    def __str__(self) -> str:
        return f"{self.number + 1}/{self.count}"


class OpenServer(Struct, frozen=True):
    """Open clients of one server: of its local database, and of its database over all servers.

    Both are the same if it is the only server.
    """

    shard: Shard
    own: Client
    whole: Client


Servers = Sequence[OpenServer]
"""All servers, in their order."""


def only(url: str) -> tuple[Shard, ...]:
    """A single server."""
    return (Shard(0, 1, url),)


def shards_of(settings: ClickHouseSettings) -> tuple[Shard, ...]:
    """The servers in their order."""
    urls = settings.shard_urls
    return tuple(Shard(number, len(urls), url) for number, url in enumerate(urls))


def whole_url(settings: ClickHouseSettings, url: str) -> str:
    """The address at which all servers' tables can be read, at the server of `url`."""
    return url if len(settings.shard_urls) < 2 else _whole(url)


def reader_urls(settings: ClickHouseSettings) -> tuple[str, ...]:
    """The addresses of `whole_url` at each server and replica; empty if no address is known.

    If the reading user has a separate address, they are for that user.
    """
    own, urls = settings.clickhouse_reader_url, list(chain.from_iterable(settings.replica_urls))
    if own and len(urls) < 2:
        return (own,)
    if own:
        account = urlsplit(own).netloc.rpartition("@")[0]
        urls = [_of_account(url, account) for url in urls]
    return tuple(whole_url(settings, url) for url in urls)


def alone(client: Client) -> Servers:
    """The client of a single server."""
    return (OpenServer(Shard(0, 1, ""), client, client),)


@contextmanager
def open_servers(settings: ClickHouseSettings, **options: Any) -> Iterator[Servers]:
    """Clients of all servers. Raises ServerUnavailable if one doesn't answer, and ClickHouseError.

    `options` are those of `open_client`.
    """
    with ExitStack() as clients:

        def opened(url: str, **more: Any) -> Client:
            client = open_client(url, **options, **more)
            clients.callback(client.close)
            return client

        shards = shards_of(settings)
        for shard in shards:
            # The client of a frozen server would wait for minutes.
            if not answers(shard.url, _ANSWER_SECONDS):
                raise ServerUnavailable(
                    f"the server {shard} at {parse_url(shard.url).host_port} doesn't answer"
                )
        if len(shards) == 1:
            yield alone(opened(shards[0].url))
            return
        yield [
            OpenServer(
                shard, opened(shard.url), opened(whole_url(settings, shard.url), settings=WHOLE_SETTINGS)
            )
            for shard in shards
        ]


def _whole(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rstrip("/") + WHOLE).geturl()


def _of_account(url: str, account: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{account}@{host}" if account else host).geturl()
