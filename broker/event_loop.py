"""The event loop of the edge and the writer: uvloop, with aiokafka told of connections that are gone.

A write to a transport whose connection was reset raises RuntimeError in uvloop, where asyncio's own says nothing; aiokafka
takes OSError only (aio-libs/aiokafka, issue 1038, open). In the moments between a broker's reset and the end of the
connection's reader, that ends the task which asks for the cluster's metadata, and who waits for metadata, such as a commit
or a lost coordinator's group, waits for ever.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final, TypeVar

import uvloop
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end in a uvloop, with every Kafka connection of the process mended."""
    mend()
    return uvloop.run(main)


def mend() -> None:
    """Make what is written to a lost connection a KafkaConnectionError, for which aiokafka has its ways."""
    for name, write in _WRITES.items():
        setattr(AIOKafkaConnection, name, _telling(write))


def _telling(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return write(self, *args, **kwargs)
        except KafkaError:
            # aiokafka's errors are RuntimeErrors, too.
            raise
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)
            raise KafkaConnectionError(f"Connection at {self.host}:{self.port} broken: {error}") from error

    return told


_WRITES: Final = {name: getattr(AIOKafkaConnection, name) for name in ("send", "_send_sasl_token")}
