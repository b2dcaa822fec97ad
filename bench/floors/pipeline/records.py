"""Shared by the processes of the floor: the records of the topics, Kafka's settings, the codec of payloads."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import zstandard
from aiokafka import AIOKafkaProducer
from msgspec import Struct

PARTITIONS: Final = 4
TOPICS: Final = ("events", "grouped", "deltas", "seen", "issues")
ID_BYTES: Final = 16
SHARED_BYTES: Final = 65_536
BOOTSTRAP: Final = os.environ.get("FLOOR_KAFKA", "")


class Item(Struct, array_like=True, gc=False):
    """An event in a chunk; `payload` is compressed."""

    project: int
    id: bytes
    received_ms: int
    payload: bytes


class Grouped(Struct, array_like=True, gc=False):
    """A chunk with its source offset, the positions of its new events, and their fingerprints, 8 bytes each."""

    source: int
    new: bytes
    fingerprints: bytes
    chunk: bytes


encode: Final = msgspec.msgpack.Encoder().encode
decode_items: Final = msgspec.msgpack.Decoder(list[Item]).decode
decode_grouped: Final = msgspec.msgpack.Decoder(Grouped).decode


class Codec:
    """Compresses each event alone, against the bytes that events share."""

    def __init__(self, content: bytes) -> None:
        shared = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        shared.precompute_compress(level=1)
        self.compress = zstandard.ZstdCompressor(dict_data=shared, level=1, write_checksum=False).compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=shared).decompress


def shared_by(events: Sequence[bytes]) -> bytes:
    """Bytes that such events share: samples from all of them."""
    step = max(1, sum(map(len, events)) // SHARED_BYTES)
    return b"".join(events[::step])[:SHARED_BYTES]


def given_codec() -> Codec:
    """The codec whose shared bytes the environment names."""
    return Codec(Path(os.environ["FLOOR_SHARED"]).read_bytes())


def producer() -> AIOKafkaProducer:
    """A producer that loses nothing. Call it in a running loop."""
    return AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        acks="all",
        enable_idempotence=True,
        max_batch_size=1 << 20,
        max_request_size=4 << 20,
    )


def ready() -> None:
    """Report readiness, and exclude loaded objects from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    Path(os.environ["FLOOR_READY"]).touch()
