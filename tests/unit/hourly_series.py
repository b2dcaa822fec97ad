"""Series of hourly counts as they are without incidents."""

import random
from collections.abc import Callable

Series = Callable[[random.Random, int], int]


def around(luck: random.Random, mean: float) -> int:
    """A count that varies more than independent events would."""
    return round(luck.gammavariate(4, mean / 4)) if mean else 0


def office(hour: int) -> float:
    day, time = hour // 24 % 7, hour % 24
    return 100.0 if day < 5 and 8 <= time < 18 else 5.0


ORDINARY: dict[str, Series] = {
    "rare": lambda luck, _: int(luck.random() < 0.05),
    "steady": lambda luck, _: around(luck, 50),
    "busy by day, calm by night": lambda luck, hour: around(luck, 20 + 180 * (7 <= hour % 24 < 22)),
    "busy on weekdays": lambda luck, hour: around(luck, office(hour)),
    "a nightly job, not on the minute": lambda luck, hour: 400 * (hour % 24 == 2 + luck.randrange(2)),
    "a weekly job": lambda luck, hour: 300 if hour % 168 == 50 else luck.randrange(3),
    "slowly growing": lambda luck, hour: around(luck, 10 + hour / 10),
    "gone and back": lambda luck, hour: around(luck, 40) * (not 400 <= hour < 430),
}
