"""The mark that a block's plan has."""

from collections.abc import Callable
from typing import Any, TypeVar
from unittest.mock import Mock

from storage.client import LIFE
from storage.exactly_once.server_state import STATE
from storage.write.block_inserter import ANY, BlockInserter

T = TypeVar("T")


class Server:
    """A server without rows, whose life is a number."""

    def __init__(self) -> None:
        self.life = 1

    async def run(self, work: Callable[[Any], T]) -> T:
        return work(self)

    def query(self, sql: str, **_: Any) -> Any:
        answers: dict[str, list[Any]] = {
            ANY: [],
            LIFE: [[f"{self.life:032x}"]],
            STATE: [["events", "", 0, 0, [], 0]],
        }
        return Mock(result_rows=answers[sql])


async def test_a_plan_on_tables_that_were_found_empty_has_the_servers_life_of_then() -> None:
    server = Server()
    inserter = BlockInserter(server, Mock(), "grouped", Mock())  # type: ignore[arg-type]
    before = await inserter.mark()
    assert (await inserter.mark()) == before
    server.life = 2
    assert not await inserter.has_rows()
    assert (await inserter.mark()).life != before.life
