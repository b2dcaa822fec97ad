"""Custom fingerprints of a client or a project's rule, with `{{ default }}` for the computed one."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from grouping.fingerprint.event_view import MAX_ELEMENTS, digest
from grouping.fingerprint.frames import Site

_DEFAULT = re.compile(r"\A\s*\{\{\s*default\s*\}\}\s*\Z")
# A client may send any JSON; people don't read longer texts.
_ELEMENT_CHARACTERS = 1000
MISSING: Final = "<none>"
"""The value of a variable that the event lacks."""


class SiteVariable(NamedTuple):
    """`function` or `file` of the deciding frame, resolved after the frame is known."""

    key: str

    def value(self, site: Site | None) -> str:
        """The cleaned name, as in the parts."""
        return (site and (site.name if self.key == "function" else site.module)) or MISSING


Piece = str | SiteVariable
Element = str | tuple[Piece, ...]
"""An element of a given fingerprint: a text, or the pieces of a rule's text with variables."""


def given(elements: Iterable[object] | None) -> tuple[str, ...]:
    """The elements as text; empty if there are only blanks and nulls, which counts as absent."""
    if not elements:
        return ()
    texts = tuple([_bounded(_text(element)) for element in islice(elements, MAX_ELEMENTS + 1)])
    return texts if any(text.strip() and text != "null" for text in texts) else ()


def is_default(element: str) -> bool:
    """Whether the element is `{{ default }}`."""
    return _DEFAULT.match(element) is not None


def splice(
    elements: tuple[Element, ...], computed: tuple[str, ...], site: Site | None = None
) -> tuple[str, ...]:
    """Parts of a custom fingerprint.

    `{{ default }}` becomes the computed parts, other elements are marked as custom.
    """
    parts: list[str] = []
    for element in elements:
        if not isinstance(element, str):
            parts.append(f"given {_joined(element, site)}")
        elif is_default(element):
            parts.extend(computed)
        else:
            parts.append(f"given {element}")
    return tuple(parts)


def _joined(pieces: tuple[Piece, ...], site: Site | None) -> str:
    return _bounded("".join([piece if isinstance(piece, str) else piece.value(site) for piece in pieces]))


def _bounded(text: str) -> str:
    """A text; of a long one the beginning, and a hash of all in the place of the rest."""
    if len(text) <= _ELEMENT_CHARACTERS:
        return text
    return f"{text[:_ELEMENT_CHARACTERS]}\u2026 {digest(text.encode('utf-8', 'surrogatepass'))}"


def _text(element: object) -> str:
    if isinstance(element, str):
        return element
    if element is None:
        return "null"
    if isinstance(element, bool):
        return "true" if element else "false"
    return str(element)
