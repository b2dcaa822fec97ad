"""The work of a statement, in steps, between which the server may die, freeze or lag."""

import re
from collections.abc import Callable, Generator
from functools import partial
from string import Formatter
from typing import Any, Protocol

from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

from tests.simulation.world import World

Work = Generator[float, None, Any]
"""A statement's work: it yields the seconds that each step takes, and returns the answer."""


def made_of(template: str) -> re.Pattern[str]:
    """Matches the statements that are made of a template of the product, with any values in its fields."""
    texts = [re.escape(text) for text, *_ in Formatter().parse(template)]
    is_open = template.endswith("}")
    return re.compile(".*".join(texts) + ".*" * is_open, re.DOTALL)


class Database(Protocol):
    """Where statements are done."""

    @property
    def world(self) -> World: ...

    @property
    def is_up(self) -> bool: ...

    @property
    def life(self) -> int:
        """How often it has died."""

    @property
    def frozen_until(self) -> float: ...

    @property
    def lag(self) -> float:
        """Additional seconds of each step of a statement."""


def work_off(database: Database, work: Work, done: Callable[[Any, BaseException | None], None]) -> None:
    """Do a statement's work in its time, then call `done` with the answer or the error."""
    _go_on(database, work, database.life, done)


def _go_on(
    database: Database, work: Work, life: int, done: Callable[[Any, BaseException | None], None]
) -> None:
    world = database.world
    if life != database.life or not database.is_up:
        work.close()
        done(None, OperationalError("the server is gone"))
        return
    if world.now < database.frozen_until:
        seconds = database.frozen_until - world.now
    else:
        try:
            # Work without duration is no step.
            while not (seconds := next(work)):
                pass
        except StopIteration as end:
            done(end.value, None)
            return
        except ClickHouseError as error:
            done(None, error)
            return
        seconds += database.lag
    world.after(seconds, partial(_go_on, database, work, life, done))
