"""Identifiers as calls give them, and as columns hold them."""

import uuid

from schemas.ids import parse_hex64
from storage.errors import BadQuery, NotFound

MAX_LIMIT = 500


def issue_number(text: str) -> int:
    """The number of an issue. Raises NotFound where the text can't be one's id."""
    number = parse_hex64(text)
    if number is None:
        raise NotFound("there is no such issue")
    return number


def event_number(text: str) -> int:
    """The number of an event. Raises NotFound where the text is no uuid."""
    try:
        return uuid.UUID(text).int
    except ValueError:
        raise NotFound("there is no such event") from None


def event_text(number: int) -> str:
    """The event's id as it was sent."""
    return str(uuid.UUID(int=number))


def page_limit(limit: int) -> int:
    """The limit of a page. Raises BadQuery outside 1 to 500."""
    if not 1 <= limit <= MAX_LIMIT:
        raise BadQuery("limit", f"a number from 1 to {MAX_LIMIT}")
    return limit
