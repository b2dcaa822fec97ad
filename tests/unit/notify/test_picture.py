"""A picture's pixels."""

from io import BytesIO

import pytest
from PIL import Image

from notify.picture import BAR, PLOT, SIZE, trend_picture

LEFT, TOP, RIGHT, BOTTOM = PLOT


def opened(counts: list[int]) -> Image.Image:
    image = Image.open(BytesIO(trend_picture(counts)))
    image.load()
    return image


def heights(counts: list[int]) -> list[int]:
    """Pixels of the bar of each hour, counted in its middle."""
    image, step = opened(counts), (RIGHT - LEFT) / len(counts)
    middles = [int(LEFT + (hour + 0.5) * step) for hour in range(len(counts))]
    return [sum(image.getpixel((x, y)) == BAR for y in range(SIZE[1])) for x in middles]


def test_bars_are_as_high_as_their_counts() -> None:
    full = BOTTOM - TOP
    assert heights([0, 10, 5, 20] * 6) == [0, full // 2, full // 4, full] * 6


def test_a_single_event_is_seen_beside_very_many() -> None:
    assert heights([1, *[1_000_000] * 23])[0] == 1


@pytest.mark.parametrize("counts", [[0] * 24, [7], [3] * 24, [10**12] * 24])
def test_every_trend_is_a_small_png_of_one_size(counts: list[int]) -> None:
    image = opened(counts)
    assert (image.format, image.size) == ("PNG", SIZE)
    assert len(trend_picture(counts)) < 8000
