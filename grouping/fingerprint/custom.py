"""Fingerprints given from outside, by a client or a project's rule, with `{{ default }}` for the computed one."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from grouping.fingerprint.frames import Site

_DEFAULT = re.compile(r"\A\s*\{\{\s*default\s*\}\}\s*\Z")
# A client may send any JSON; what is longer than this tells no more about the group.
_ELEMENT_CHARACTERS = 1000
MISSING: Final = "<none>"
"""What a variable stands for where the event has no such value."""


class SiteVariable(NamedTuple):
    """`function` or `file` of the deciding frame, known only once that is found."""

    key: str

    def value(self, site: Site | None) -> str:
        """The cleaned name, as it stands in the parts."""
        return (site and (site.name if self.key == "function" else site.module)) or MISSING


Piece = str | SiteVariable
Element = str | tuple[Piece, ...]
"""An element of a given fingerprint: a text, or the pieces of a rule's text with variables."""


def given(elements: Iterable[object] | None) -> tuple[str, ...]:
    """The elements as text; empty when nothing but blanks and nulls was given, which is as if it were left out."""
    if not elements:
        return ()
    texts = tuple([_text(element) for element in elements])
    return texts if any(text.strip() and text != "null" for text in texts) else ()


def is_default(element: str) -> bool:
    """Whether the element stands for the computed parts."""
    return _DEFAULT.match(element) is not None


def needs_site(elements: tuple[Element, ...]) -> bool:
    """Whether a variable stands for something of the deciding frame."""
    return any(
        isinstance(piece, SiteVariable) for one in elements if not isinstance(one, str) for piece in one
    )


def splice(
    elements: tuple[Element, ...], computed: tuple[str, ...], site: Site | None = None
) -> tuple[str, ...]:
    """Parts of a given fingerprint: `{{ default }}` becomes the computed parts, the rest is marked as given."""
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
    return "".join([piece if isinstance(piece, str) else piece.value(site) for piece in pieces])[
        :_ELEMENT_CHARACTERS
    ]


def _text(element: object) -> str:
    if isinstance(element, str):
        return element[:_ELEMENT_CHARACTERS]
    if element is None:
        return "null"
    if isinstance(element, bool):
        return "true" if element else "false"
    return str(element)[:_ELEMENT_CHARACTERS]
