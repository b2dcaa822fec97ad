"""Topics of six partitions, and the tables of several servers."""

from pathlib import Path

from aiokafka import AIOKafkaProducer

from broker.topics import ensure_topics
from schemas.chunks import decode_grouped
from schemas.environment import load
from schemas.settings import WriterSettings
from storage.shards import WHOLE
from tests.integration.storage.grouped import Stage
from tests.shard_servers import CLUSTER

PARTITIONS = 6


class SpreadStage(Stage):
    """Topics of six partitions, and the tables of three servers; counts are sums over all of them."""

    def __init__(self, bootstrap: str, urls: list[str], prefix: str, folder: Path) -> None:
        super().__init__(bootstrap, urls[0] + WHOLE, prefix, folder)
        self.environ |= {
            "SVC_CLICKHOUSE_SHARDS": ", ".join(urls),
            "SVC_CLICKHOUSE_CLUSTER": CLUSTER,
            "SVC_TOPIC_PARTITIONS": str(PARTITIONS),
        }
        del self.environ["SVC_CLICKHOUSE_URL"]
        self.settings = load(WriterSettings, self.environ)
        self.on_shard = [0] * len(urls)
        """Events that were sent to the partitions of each server."""
        self._values: set[bytes] = set()

    async def prepare(self) -> "SpreadStage":
        await ensure_topics(self.settings)
        return self

    async def send(self, producer: AIOKafkaProducer, partition: int, value: bytes) -> None:
        if value not in self._values:
            self._values.add(value)
            self.on_shard[partition % len(self.on_shard)] += len(decode_grouped(value).kept)
        await super().send(producer, partition, value)
