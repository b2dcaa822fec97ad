"""Variables of a rule's fingerprint: `{{ tags[tenant] }}` in the text of an element stands for the event's own value.

Keys are those of the query language. `{{ default }}`, alone in its element, stands for all computed parts.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from grouping.fingerprint.custom import MISSING, Element, Piece, SiteVariable, is_default
from grouping.fingerprint.messages import template
from query.event_view import EventView

FIELDS: Final = ("type", "message", "environment", "release", "platform", "os")
SITE_VARIABLES: Final = ("function", "file")
KNOWN: Final = ("default", *FIELDS[:2], *SITE_VARIABLES, *FIELDS[2:], "tags[KEY]")
"""What a variable may be called."""
_VARIABLE: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_TAG: Final = re.compile(r'tags(?:\["(?P<quoted>[^"\]]+)"\]|\[(?P<key>[^"\[\]]+)\]|\.(?P<dotted>.+))')
# As much of a message as grouping looks at.
_MESSAGE_CHARACTERS: Final = 600


class EventVariable(NamedTuple):
    """A value that the event itself has: a field's, or a tag's."""

    key: str
    is_tag: bool

    def value(self, view: EventView) -> str:
        """The event's value; of the message its template, because what varies in it would make an issue of every event."""
        if self.is_tag:
            return view.tags.get(self.key) or MISSING
        if self.key == "message":
            return template(view.message[:_MESSAGE_CHARACTERS]) or MISSING
        return next(iter(view.values(self.key)), MISSING)


Compiled = str | tuple[Piece | EventVariable, ...]


def compiled(element: str) -> Compiled:
    """An element ready to be filled. What looks like a variable and is none stays as it is written."""
    if is_default(element) or "{{" not in element:
        return element
    pieces = tuple(_pieces(element))
    return element if all(isinstance(piece, str) for piece in pieces) else pieces


def filled(elements: tuple[Compiled, ...], view: Callable[[], EventView]) -> tuple[Element, ...]:
    """The elements with the event's values; those of its place are not known yet. `view` is asked for only where it is needed."""
    return tuple([one if isinstance(one, str) else tuple([_value(p, view) for p in one]) for one in elements])


def variable_error(element: str) -> str | None:
    """Why an element can't be saved, with the position in it; None where it can."""
    if is_default(element):
        return None
    end = 0
    for found in _VARIABLE.finditer(element):
        end = found.end()
        if found[1] == "default":
            return f"at position {found.start()}: {{{{ default }}}} stands alone in its element"
        if isinstance(_variable(found[1], found[0]), str):
            return f"at position {found.start()}: expected one of the variables {', '.join(KNOWN)}, not {found[1][:50]!r}"
    opened = element.find("{{", end)
    return None if opened < 0 else f"at position {opened}: expected a variable such as {{{{ tags[KEY] }}}}"


def _pieces(element: str) -> Iterator[Piece | EventVariable]:
    end = 0
    for found in _VARIABLE.finditer(element):
        if found.start() > end:
            yield element[end : found.start()]
        yield _variable(found[1], found[0])
        end = found.end()
    if end < len(element):
        yield element[end:]


def _variable(name: str, text: str) -> Piece | EventVariable:
    """The variable of a name, or the text as it stands."""
    if name in SITE_VARIABLES:
        return SiteVariable(name)
    if name in FIELDS:
        return EventVariable(name, is_tag=False)
    tag = _TAG.fullmatch(name)
    return text if tag is None else EventVariable(tag["quoted"] or tag["key"] or tag["dotted"], is_tag=True)


def _value(piece: Piece | EventVariable, view: Callable[[], EventView]) -> Piece:
    return piece.value(view()) if isinstance(piece, EventVariable) else piece
