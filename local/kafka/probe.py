"""Is a plaintext Kafka broker ready, and which cluster is it of? Its port opens earlier than it answers, so it is asked who the brokers are."""

import socket
import struct
from typing import NamedTuple

METADATA, VERSION, CORRELATION = 3, 2, 1
CLIENT = b"probe"
# Kafka protocol: size, then request header v1 (api key, version, correlation id, client id), then "no topics".
REQUEST = struct.pack(">hhih", METADATA, VERSION, CORRELATION, len(CLIENT)) + CLIENT + struct.pack(">i", 0)


class Cluster(NamedTuple):
    """What a broker says of its cluster."""

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


def cluster_at(port: int, host: str = "127.0.0.1", timeout: float = 1.0) -> Cluster | None:
    """The cluster of the broker at `port`; None while none answers."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(struct.pack(">i", len(REQUEST)) + REQUEST)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return _cluster(_read(connection, size))
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _cluster(answer: bytes) -> Cluster:
    """Reads the correlation id, the brokers (node, host, port, rack) and the cluster's id. Raises struct.error for another form."""
    _correlation, count = struct.unpack_from(">ii", answer)
    place = 8
    for _ in range(count):
        _host, place = _text(answer, place + 4)
        _rack, place = _text(answer, place + 4)
    return Cluster(count, _text(answer, place)[0])


def _text(answer: bytes, place: int) -> tuple[str | None, int]:
    """A string or null, and where it ends."""
    (length,) = struct.unpack_from(">h", answer, place)
    end = place + 2 + max(0, length)
    return (answer[place + 2 : end].decode() if length >= 0 else None), end


def brokers(port: int, host: str = "127.0.0.1", timeout: float = 1.0) -> int:
    """How many brokers the one at `port` lists in its metadata; 0 while none answers."""
    found = cluster_at(port, host, timeout)
    return found.brokers if found else 0
