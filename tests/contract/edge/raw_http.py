"""Requests byte for byte, on separate connections."""

import asyncio
from contextlib import suppress

from tests.contract.edge.live_edge import LiveEdge


def head(edge: LiveEdge, *lines: str, headers: dict[str, str] | None = None) -> bytes:
    """The head of a request for one event, with these lines before the headers."""
    given = edge.headers() if headers is None else headers
    every = (
        "POST /v1/events HTTP/1.1",
        "Host: x",
        *lines,
        *(f"{name}: {value}" for name, value in given.items()),
    )
    return "".join(f"{line}\r\n" for line in (*every, "")).encode()


def request(edge: LiveEdge, body: bytes) -> bytes:
    return head(edge, f"Content-Length: {len(body)}") + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(60):
        answered = await reader.readuntil(b"\r\n\r\n")
        length = int(answered.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(answered[9:12]), await reader.readexactly(length)


async def hang_up(*writers: asyncio.StreamWriter) -> None:
    """Go away without a word."""
    for writer in writers:
        writer.transport.abort()
    for writer in writers:
        with suppress(ConnectionError):
            await writer.wait_closed()
