"""Variables of a rule's fingerprint: `{{ tags[tenant] }}` in an element is replaced by the event's value.

Keys are those of the query language. `{{ default }}`, alone in its element, is replaced by all computed parts.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from grouping.fingerprint.custom import MISSING, Element, Piece, SiteVariable, is_default
from grouping.fingerprint.messages import CHARACTERS, template
from query.event_view import EventView

FIELDS: Final = ("type", "message", "environment", "release", "platform", "os")
SITE_VARIABLES: Final = ("function", "file")
KNOWN: Final = ("default", *FIELDS[:2], *SITE_VARIABLES, *FIELDS[2:], "tags[KEY]")
"""Names of variables."""
_VARIABLE: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_TAG: Final = re.compile(r'tags(?:\["(?P<quoted>[^"\]]+)"\]|\[(?P<key>[^"\[\]]+)\]|\.(?P<dotted>.+))')


class EventVariable(NamedTuple):
    """A value of the event: a field or a tag."""

    key: str
    is_tag: bool

    def value(self, view: EventView) -> str:
        """The event's value; for the message its template.

        The variable parts of a message would make each event an issue.
        """
        if self.is_tag:
            return view.tags.get(self.key) or MISSING
        if self.key == "message":
            return template(view.message[:CHARACTERS]) or MISSING
        return next(iter(view.values(self.key)), MISSING)


Compiled = str | tuple[Piece | EventVariable, ...]


def compiled(element: str) -> Compiled:
    """A parsed element. Text that looks like a variable but isn't stays as it is."""
    if is_default(element) or "{{" not in element:
        return element
    pieces = tuple(_pieces(element))
    return element if all(isinstance(piece, str) for piece in pieces) else pieces


def filled(elements: tuple[Compiled, ...], view: Callable[[], EventView]) -> tuple[Element, ...]:
    """The elements with the event's values, except those of its site. `view` is called only if needed."""
    return tuple([e if isinstance(e, str) else tuple([_value(p, view) for p in e]) for e in elements])


def variable_error(element: str) -> str | None:
    """The error of an element, with its position; None if it can be saved."""
    if is_default(element):
        return None
    end = 0
    for found in _VARIABLE.finditer(element):
        end = found.end()
        if found[1] == "default":
            return f"at position {found.start()}: {{{{ default }}}} must be alone in its element"
        if isinstance(_variable(found[1], found[0]), str):
            return (
                f"at position {found.start()}: expected one of the variables {', '.join(KNOWN)}, "
                f"not {found[1][:50]!r}"
            )
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
    """The variable of a name, or the unchanged text."""
    if name in SITE_VARIABLES:
        return SiteVariable(name)
    if name in FIELDS:
        return EventVariable(name, is_tag=False)
    tag = _TAG.fullmatch(name)
    return text if tag is None else EventVariable(tag["quoted"] or tag["key"] or tag["dotted"], is_tag=True)


def _value(piece: Piece | EventVariable, view: Callable[[], EventView]) -> Piece:
    return piece.value(view()) if isinstance(piece, EventVariable) else piece
