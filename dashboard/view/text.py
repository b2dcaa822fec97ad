"""Text from events, made safe to show: isolated, without invisible characters, and of bounded length.

A message can contain bidirectional controls, control characters, or a megabyte of text. Each piece is wrapped
in `<bdi>`, invisible characters are shown as code points, and long text is cut, with a way to see the rest.
"""

import re
import unicodedata
from typing import Final, Protocol

from markupsafe import Markup, escape

from schemas.issues import issue_title

LINE: Final = 300
BLOCK: Final = 2_000
LINES: Final = 20
"""Lines of a folded block."""
MAX_SHOWN: Final = 100_000
"""Characters that "Show all" is limited to; the JSON has the rest."""

EXACT_USERS: Final = 100
"""Distinct users that every count of them counts exactly."""

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def marked(text: str) -> Markup:
    """The text escaped, with each invisible or bidirectional control character shown as its code point."""
    parts: list[Markup] = []
    position = 0
    for match in _INVISIBLE.finditer(text):
        parts.append(escape(text[position : match.start()]))
        parts.append(_glyph(match.group()))
        position = match.end()
    parts.append(escape(text[position:]))
    return Markup().join(parts)


def _glyph(character: str) -> Markup:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character").lower()
    return Markup('<span class="glyph" title="{}">{}</span>').format(f"{code} {name}", code)


def flat(text: object, limit: int = 80) -> str:
    """Short text without markup, such as for titles, with invisible characters as code points."""
    whole = str(text)
    safe = _INVISIBLE.sub(lambda match: f"[U+{ord(match.group()):04X}]", whole[:limit])
    return safe if len(whole) <= limit else f"{safe}\u2026"


def inline(text: object, limit: int = LINE) -> Markup:
    """One line of text, cut to `limit` characters with its full length as tooltip."""
    whole = str(text)
    if len(whole) <= limit:
        return Markup("<bdi>{}</bdi>").format(marked(whole))
    return Markup('<bdi>{}</bdi><span class="cut" title="{} characters">…</span>').format(
        marked(whole[:limit]), f"{len(whole):,}"
    )


def block(text: object, limit: int = BLOCK, lines: int = LINES) -> Markup:
    """Text with line breaks; long text is folded behind "Show all"."""
    whole = str(text)
    head = "\n".join(whole[: limit + 1].split("\n", lines)[:lines])[:limit]
    if len(whole) == len(head):
        return Markup('<div class="prose"><bdi>{}</bdi></div>').format(marked(whole))
    end = Markup('<p class="hint">The rest is in the JSON.</p>') if len(whole) > MAX_SHOWN else Markup()
    return Markup(
        '<div class="prose"><bdi>{}</bdi><span class="cut">…</span></div>'
        '<details class="all"><summary>Show all {} characters</summary>'
        '<div class="prose"><bdi>{}</bdi></div>{}</details>'
    ).format(marked(head), f"{len(whole):,}", marked(whole[:MAX_SHOWN]), end)


def code_spans(sentence: str) -> Markup:
    """A sentence in which names are between backticks."""
    pieces = (inline(piece) for piece in sentence.split("`"))
    return Markup().join(
        Markup("<code>{}</code>").format(piece) if number % 2 else piece
        for number, piece in enumerate(pieces)
    )


class Titled(Protocol):
    """An issue, an event or a part of an issue."""

    @property
    def error_type(self) -> str: ...

    @property
    def message(self) -> str: ...


def title(one: Titled) -> str:
    """The title of an issue."""
    return issue_title(one.error_type, one.message)


def where(culprit: str) -> str:
    """The place where an issue happened; the file alone for code without a name.

    The stack names such code as its language does (`<module>`).
    """
    return culprit.removeprefix("<anonymous> in ")


def count(number: int) -> Markup:
    """A count, abbreviated, with the exact one as tooltip."""
    exact = f"{number:,}"
    if number < 10_000:
        return escape(exact)
    for size, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            short = f"{number / size:.1f}".removesuffix(".0") if number < 100 * size else f"{number // size}"
            return Markup('<span title="{}">{}{}</span>').format(exact, short, letter)
    raise AssertionError(number)


def plural(number: int, word: str) -> str:
    """`1 event`, `2 events`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def users(number: int) -> str:
    """`1 user`, `about 417 users`: small numbers are exact, the others estimates."""
    return ("about " if number > EXACT_USERS else "") + plural(number, "user")
