"""Fingerprints given from outside, by a client or a project's rule, with `{{ default }}` for the computed one."""

import re
from collections.abc import Iterable

_DEFAULT = re.compile(r"\A\s*\{\{\s*default\s*\}\}\s*\Z")
# A client may send any JSON; what is longer than this tells no more about the group.
_ELEMENT_CHARACTERS = 1000


def given(elements: Iterable[object] | None) -> tuple[str, ...]:
    """The elements as text; empty when nothing but blanks and nulls was given, which is as if it were left out."""
    if not elements:
        return ()
    texts = tuple([_text(element) for element in elements])
    return texts if any(text.strip() and text != "null" for text in texts) else ()


def splice(elements: tuple[str, ...], computed: tuple[str, ...]) -> tuple[str, ...]:
    """Parts of a given fingerprint: `{{ default }}` becomes the computed parts, the rest is marked as given."""
    parts: list[str] = []
    for element in elements:
        if _DEFAULT.match(element):
            parts.extend(computed)
        else:
            parts.append(f"given {element}")
    return tuple(parts)


def _text(element: object) -> str:
    if isinstance(element, str):
        return element[:_ELEMENT_CHARACTERS]
    if element is None:
        return "null"
    if isinstance(element, bool):
        return "true" if element else "false"
    return str(element)[:_ELEMENT_CHARACTERS]
