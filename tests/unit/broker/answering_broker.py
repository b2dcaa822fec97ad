"""A broker of few words, for clients of aiokafka."""

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any

from aiokafka.protocol.admin import ApiVersionResponse_v0
from aiokafka.protocol.metadata import MetadataResponse_v1

FETCH, METADATA, API_VERSIONS = 1, 3, 18
NO_LINGER = struct.pack("ii", 1, 0)
"""A socket that is closed with this is reset, as those of a killed process with unread data are."""


class Broker:
    """Answers the requests of a starting client, and resets its connections.

    It leaves requests in `unanswered` without an answer until `answer`, and sets `requested`. It hangs up
    when a record is asked for.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, topic: str = "") -> None:
        self._tls, self._topic = tls, topic
        self.unanswered: set[int] = set()
        self.requested = asyncio.Event()
        self._withheld: list[tuple[asyncio.StreamWriter, bytes]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        self._metadata = MetadataResponse_v1([(0, host, port, None)], 0, self._topics()).encode()
        return self.address

    def _topics(self) -> list[Any]:
        return [(0, self._topic, False, [(0, 0, 0, [0], [0])])] if self._topic else []

    @property
    def connections(self) -> list[asyncio.StreamWriter]:
        """Those that are open."""
        return [writer for writer in self._writers if not writer.is_closing()]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        versions = ApiVersionResponse_v0(0, [(API_VERSIONS, 0, 0), (METADATA, 0, 1), (FETCH, 0, 4)]).encode()
        while True:
            try:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
            except (EOFError, OSError):
                writer.close()
                return
            kind, _, correlation = struct.unpack(">hhi", request[:8])
            if kind == FETCH:
                writer.close()
                return
            answer = struct.pack(">i", correlation) + {API_VERSIONS: versions, METADATA: self._metadata}[kind]
            answer = struct.pack(">i", len(answer)) + answer
            if kind in self.unanswered:
                self._withheld.append((writer, answer))
                self.requested.set()
            else:
                writer.write(answer)

    def answer(self) -> None:
        """Answer waiting requests, and all later ones."""
        self.unanswered.clear()
        for writer, answer in self._withheld:
            writer.write(answer)

    def reset(self) -> None:
        for writer in self._writers:
            if writer.is_closing():
                continue
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            writer.transport.abort()

    def ignore(self) -> None:
        """Read nothing more, as a broker whose answer to a fetch is under way."""
        for writer in self._writers:
            writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def stop(self) -> None:
        """Wait until each connection is closed: uvloop waits for ever at its end for one that it has to warn of."""
        self._server.close()
        for writer in self._writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await self._server.wait_closed()
