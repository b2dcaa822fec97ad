"""The server's limits on events (protocol, section 8), and the library's own."""

from typing import Final

MAX_BODY_BYTES: Final = 1_048_576
"""One megabyte of decoded JSON, per event and per batch (contract, section 2, point 5)."""

BATCH_EVENTS: Final = 100
BREADCRUMBS: Final = 100
FRAMES: Final = 100
CAUSES: Final = 10
TAG_KEYS: Final = 50
TAG_KEY_CHARS: Final = 64
TAG_VALUE_CHARS: Final = 200
CONTEXT_LINES: Final = 5

BATCH_FRAME_BYTES: Final = len(b'{"events":[]}')
"""The size of a batch's wrapper, without the commas between events."""

MAX_EVENT_BYTES: Final = MAX_BODY_BYTES - BATCH_FRAME_BYTES
"""The largest event that fits into a batch."""

MESSAGE_CHARS: Final = 16_384
TEXT_CHARS: Final = 2_048
SOURCE_LINE_CHARS: Final = 240
