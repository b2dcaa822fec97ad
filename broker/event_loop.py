"""Runs the event loop of the edge and the writer: uvloop, with two patches of aiokafka's connections.

- After a connection reset, a write to the transport raises RuntimeError in uvloop, while asyncio's own loop
  ignores it. aiokafka only handles OSError (aio-libs/aiokafka, issue 1038, open). Until the connection's
  reader ends, such an error ends the task that requests cluster metadata. Whatever waits for metadata then
  never returns, such as a commit or a lost coordinator's group.
- If a connection over TLS is closed while a response is under way, as with a consumer's fetch, uvloop waits
  for the broker's close_notify until 30 s are over; asyncio's own loop ends with the response.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final, TypeVar

import uvloop
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

from schemas.addresses import host_port

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in uvloop, with aiokafka patched."""
    patch_aiokafka()
    return uvloop.run(main)


def patch_aiokafka() -> None:
    """Make writes to a lost connection raise KafkaConnectionError, and make `close` immediate.

    uvloop raises RuntimeError, which aiokafka doesn't handle.
    """
    for name, write in _WRITES.items():
        setattr(AIOKafkaConnection, name, _translating(write))
    AIOKafkaConnection.close = _close


def _translating(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def translated(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return write(self, *args, **kwargs)
        except KafkaError:
            # aiokafka's errors are RuntimeErrors too.
            raise
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)
            raise KafkaConnectionError(
                f"Connection at {host_port(self.host, self.port)} broken: {error}"
            ) from error

    return translated


@wraps(AIOKafkaConnection.close)
def _close(self: Any, *args: Any, **kwargs: Any) -> Any:
    writer = self._writer
    closed = _CLOSE(self, *args, **kwargs)
    if writer is not None and self._security_protocol.endswith("SSL"):
        # Nothing is lost: the caller has awaited the responses to its requests, or discards them.
        writer.transport.abort()
    return closed


_CLOSE: Final = AIOKafkaConnection.close
_WRITES: Final = {name: getattr(AIOKafkaConnection, name) for name in ("send", "_send_sasl_token")}
