"""A metadata request to a plaintext Kafka broker. Its port opens before it is ready, so connecting proves nothing."""

import socket
import struct
from typing import NamedTuple

METADATA, VERSION, CORRELATION = 3, 2, 1
CLIENT = b"probe"
SECONDS = 1.0
# Kafka protocol: size, then request header v1 (api key, version, correlation id, client id), then "no topics".
REQUEST = struct.pack(">hhih", METADATA, VERSION, CORRELATION, len(CLIENT)) + CLIENT + struct.pack(">i", 0)


class Cluster(NamedTuple):
    """A cluster as described by a broker: the number of brokers and the cluster id."""

    brokers: int
    id: str | None


def _read(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        part = connection.recv(size - len(read))
        if not part:
            raise ConnectionError("the broker closed the connection")
        read += part
    return read


def cluster_at(port: int) -> Cluster | None:
    """The cluster of the broker at `port`; None if none answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            connection.sendall(struct.pack(">i", len(REQUEST)) + REQUEST)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return _cluster(_read(connection, size))
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _cluster(response: bytes) -> Cluster:
    """Parse the correlation id, the brokers (node, host, port, rack) and the cluster id. Raises struct.error."""
    _correlation, count = struct.unpack_from(">ii", response)
    offset = 8
    for _ in range(count):
        _host, offset = _text(response, offset + 4)
        _rack, offset = _text(response, offset + 4)
    return Cluster(count, _text(response, offset)[0])


def _text(response: bytes, offset: int) -> tuple[str | None, int]:
    """A nullable string, and the offset after it."""
    (length,) = struct.unpack_from(">h", response, offset)
    end = offset + 2 + max(0, length)
    return (response[offset + 2 : end].decode() if length >= 0 else None), end


def brokers(port: int) -> int:
    """The number of brokers in the metadata of the broker at `port`; 0 if none answers."""
    cluster = cluster_at(port)
    return cluster.brokers if cluster else 0
