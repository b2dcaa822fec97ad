"""Stored payloads back into the events that were sent."""

import logging

import msgspec
from msgspec import Raw

from schemas.errors import BadPayload
from schemas.payload import MissingDictionary, decompress
from storage.errors import StorageUnavailable
from storage.reader.identifiers import event_text

log = logging.getLogger(__name__)


def readable(event: int, frame: bytes) -> Raw | None:
    """The event as it was sent; None, and a line in the log, for bytes that are damaged.

    Raises StorageUnavailable while the dictionary that the frame names is missing: the file can be supplied.
    """
    try:
        sent = decompress(frame)
        # Looks at every byte without building anything: what is no JSON would break the answer that it is put into.
        msgspec.json.decode(sent, type=Raw)
    except MissingDictionary as error:
        raise StorageUnavailable(str(error)) from None
    except (BadPayload, msgspec.DecodeError) as error:
        log.warning("the stored content of event %s can't be read: %s", event_text(event), error)
        return None
    return Raw(sent)
