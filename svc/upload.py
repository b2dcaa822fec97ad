"""Posts batches over one kept-alive connection to the ingest address."""

import contextlib
import gzip
import http.client
import threading
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from svc.answers import MAX_ANSWER_BYTES, Answer, parse_answer
from svc.connection import Connection, connection_to

_WORTH_ZIPPING: Final = 1_024
_LEVEL: Final = 5
_PATH: Final = "/v1/events:batch"


class Uploader:
    """Posts batches one at a time; `post` raises no network or server errors."""

    def __init__(self, url: str, token: str, sdk: str, timeout: float = 10.0) -> None:
        self.url = url
        self._path = urlsplit(url).path.rstrip("/") + _PATH
        self._timeout = timeout
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Svc-Sdk": sdk,
            "Content-Type": "application/json",
        }

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer:
        """Send encoded events as one batch and wait for the answer; no, broken or invalid answers have `status` 0.

        The whole exchange, connecting included, takes at most the smaller of the uploader's and this `timeout`.
        """
        body = b'{"events":[' + b",".join(events) + b"]}"
        headers = self._headers
        if len(body) >= _WORTH_ZIPPING:
            body = gzip.compress(body, _LEVEL, mtime=0)
            headers = {**headers, "Content-Encoding": "gzip"}
        with self._lock:
            try:
                return self._exchange(body, headers, len(events), timeout)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._drop()
                return Answer(0, why=repr(error))

    def _exchange(self, body: bytes, headers: dict[str, str], sent: int, timeout: float | None) -> Answer:
        allowed = self._timeout if timeout is None else min(timeout, self._timeout)
        if self._connection is None or self._connection.was_closed():
            self._drop()
            self._connection = connection_to(self.url)
        connection = self._connection
        connection.allow(allowed)
        connection.request("POST", self._path, body, headers)
        response = connection.getresponse()
        content = response.read(MAX_ANSWER_BYTES)
        answer = parse_answer(response.status, response.headers, content, sent)  # type: ignore[arg-type]
        if response.will_close or answer.status == 0 or len(content) == MAX_ANSWER_BYTES:
            self._drop()
        return answer

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()

    def close(self) -> None:
        """Close the connection; a later `post` opens another."""
        with self._lock:
            self._drop()

    def after_fork(self) -> None:
        """In a forked child: replace the lock and close the child's copy of the connection; nothing is sent."""
        self._lock = threading.Lock()
        self._drop()
