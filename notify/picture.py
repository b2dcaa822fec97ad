"""A trend as a small picture. Pure."""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from PIL import Image, ImageDraw, ImageFont

SIZE: Final = (480, 120)
"""Pixels."""
PLOT: Final = (12, 28, 468, 96)
"""Left, top, right and bottom of the bars: the highest fills it."""
GAP: Final = 4
"""Pixels between bars."""
# The background is opaque: mail and chat show the picture on white and on black.
PAPER: Final = (255, 255, 255)
BAR: Final = (11, 107, 117)
_LINE: Final = (203, 213, 225)
_INK: Final = (51, 65, 85)
_FONT_PIXELS: Final = 12


def trend_picture(counts: Sequence[int]) -> bytes:
    """Events of each hour, the latest last, as bars from a common line; a PNG. An hour with any event has at least one pixel."""
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(_FONT_PIXELS)
    left, top, right, bottom = PLOT
    most = max(1, *counts)
    step = (right - left) / len(counts)
    for hour, count in enumerate(counts):
        if count:
            x = left + hour * step
            height = max(1, round(count / most * (bottom - top)))
            draw.rectangle(
                (round(x + GAP / 2), bottom - height, round(x + step - GAP / 2) - 1, bottom - 1), BAR
            )
    draw.line((left, bottom, right, bottom), _LINE)
    middle, below = (left + right) / 2, bottom + 6
    draw.text((left, 8), "Events an hour", _INK, font)
    draw.text((right, 8), f"most: {max(counts):,}", _INK, font, anchor="ra")
    draw.text((left, below), f"{len(counts)} hours ago", _INK, font)
    draw.text((middle, below), f"{len(counts) // 2}", _INK, font, anchor="ma")
    draw.text((right, below), "now", _INK, font, anchor="ra")
    # An edge, for a page that is white as well.
    draw.rectangle((0, 0, SIZE[0] - 1, SIZE[1] - 1), outline=_LINE)
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
