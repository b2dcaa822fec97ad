"""Is a plaintext Kafka broker ready? Its port opens earlier than it answers, so it is asked who the brokers are."""

import socket
import struct

METADATA, VERSION, CORRELATION = 3, 1, 1
CLIENT = b"probe"
# Kafka protocol: size, then request header v1 (api key, version, correlation id, client id), then "no topics".
REQUEST = struct.pack(">hhih", METADATA, VERSION, CORRELATION, len(CLIENT)) + CLIENT + struct.pack(">i", 0)


def _read(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        part = connection.recv(size - len(read))
        if not part:
            raise ConnectionError("the broker closed the connection")
        read += part
    return read


def brokers(port: int, host: str = "127.0.0.1", timeout: float = 1.0) -> int:
    """How many brokers the one at `port` lists in its metadata; 0 while none answers."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(struct.pack(">i", len(REQUEST)) + REQUEST)
            (size,) = struct.unpack(">i", _read(connection, 4))
            _correlation, count = struct.unpack_from(">ii", _read(connection, size))
    except OSError:
        return 0
    return int(count)
