"""Stands in for uvicorn where it isn't installed: `python -m tests.unit.svc.asgi_server MODULE:APP --port PORT`.

Answers one request without a body a connection, over a real socket. No lifespan.
"""

import argparse
import asyncio
import contextlib
import importlib
from collections.abc import MutableMapping
from typing import Any


async def serve(app: Any, port: int) -> None:
    """Answer until the process is ended."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        method, target, _ = lines[0].split(b" ")
        path, _, query = target.partition(b"?")
        headers = [line.split(b": ", 1) for line in lines[1:] if line]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method.decode(), "path": path.decode(), "query_string": query, "root_path": "",
            "headers": [(name.lower(), value) for name, value in headers], "server": ("127.0.0.1", port),
        }  # fmt: skip

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                writer.write(b"HTTP/1.1 %d -\r\nConnection: close\r\n\r\n" % message["status"])
            else:
                writer.write(message.get("body", b""))

        with contextlib.suppress(Exception):
            await app(scope, receive, send)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("--port", type=int)
    given = parser.parse_args()
    module, _, name = given.app.partition(":")
    asyncio.run(serve(getattr(importlib.import_module(module), name), given.port))
