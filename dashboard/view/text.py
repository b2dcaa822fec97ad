"""Text from events, made safe to look at: isolated, without invisible tricks, and never endless.

A message can hold marks that turn the reading direction, control characters, or a megabyte. Each piece stands in a `<bdi>`,
what can't be seen is shown by its code point, and what is long is cut with a way to see the rest.
"""

import re
import unicodedata
from typing import Final

from markupsafe import Markup, escape

LINE: Final = 300
BLOCK: Final = 2_000
LINES: Final = 20
"""Lines of a block that are shown before it is unfolded."""
MOST: Final = 100_000
"""Characters after which even "show all" ends; the JSON has the rest."""

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def marked(text: str) -> Markup:
    """The text escaped, with each invisible or direction-turning character shown by its code point."""
    parts: list[Markup] = []
    position = 0
    for found in _INVISIBLE.finditer(text):
        parts.append(escape(text[position : found.start()]))
        parts.append(_glyph(found.group()))
        position = found.end()
    parts.append(escape(text[position:]))
    return Markup().join(parts)


def _glyph(character: str) -> Markup:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character").lower()
    return Markup('<span class="glyph" title="{}">{}</span>').format(f"{code} {name}", code)


def flat(text: object, most: int = 80) -> str:
    """Text for places that take no markup, such as titles: short, with what can't be seen as its code point."""
    whole = str(text)
    shown = _INVISIBLE.sub(lambda found: f"[U+{ord(found.group()):04X}]", whole[:most])
    return shown if len(whole) <= most else f"{shown}\u2026"


def inline(text: object, most: int = LINE) -> Markup:
    """One piece of text within a line; what is cut off is said, and left to the page that shows it whole."""
    whole = str(text)
    if len(whole) <= most:
        return Markup("<bdi>{}</bdi>").format(marked(whole))
    return Markup('<bdi>{}</bdi><span class="cut" title="{} characters">…</span>').format(
        marked(whole[:most]), f"{len(whole):,}"
    )


def block(text: object, most: int = BLOCK, lines: int = LINES) -> Markup:
    """Text of any length, line ends kept; what is long, or has many lines, is folded behind "show all"."""
    whole = str(text)
    head = "\n".join(whole[: most + 1].split("\n", lines)[:lines])[:most]
    if len(whole) == len(head):
        return Markup('<div class="prose"><bdi>{}</bdi></div>').format(marked(whole))
    end = Markup('<p class="hint">The rest is in the JSON.</p>') if len(whole) > MOST else Markup()
    return Markup(
        '<div class="prose"><bdi>{}</bdi><span class="cut">…</span></div>'
        '<details class="all"><summary>Show all {} characters</summary><div class="prose"><bdi>{}</bdi></div>{}</details>'
    ).format(marked(head), f"{len(whole):,}", marked(whole[:MOST]), end)


def count(number: int) -> Markup:
    """A count, short, with the exact one at hand."""
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
