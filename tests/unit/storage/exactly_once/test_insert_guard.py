"""The statements before an insert, to a server that answers fast or slowly."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from storage.exactly_once.block_plan import BlockPlan
from storage.exactly_once.block_tokens import ServerMark
from storage.exactly_once.insert_guard import (
    RUNNING_TRIES,
    InsertGuard,
    Renewer,
    SessionLength,
    TokenUnreliable,
)
from storage.exactly_once.insert_pauses import ANNOUNCE, IN_FORCE

T = TypeVar("T")
PLAN = BlockPlan((), ServerMark(1, (), 1), 0)


class Server:
    """A server whose answers take some seconds each; notes its statements."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.statements: list[str] = []
        self.session = 0
        self.now = 100.0
        self.seconds = seconds
        self.tries_left = 0
        """How many looks still find an earlier try."""
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    async def run(self, work: Callable[[Any], T]) -> T:
        return work(self)

    def get_client_setting(self, _: str) -> None:
        """It has no replicas."""

    def query(self, sql: str, settings: Any = None, **_: Any) -> Any:
        self._answer(sql)
        self.session = (settings or {}).get("session_timeout", self.session)
        self.result_rows: list[Any] = []
        if sql == RUNNING_TRIES:
            self.result_rows = [(int(self.tries_left > 0),)]
            self.tries_left -= 1
        return self

    def command(self, sql: str, parameters: dict[str, int]) -> None:
        self._answer(sql)
        assert parameters["milliseconds"] >= (self.session + 2) * 1000

    def _answer(self, sql: str) -> None:
        names = {IN_FORCE: "pauses", ANNOUNCE: "announcement", "SELECT 1": "session", RUNNING_TRIES: "tries"}
        self.statements.append(names[sql])
        self.now += self.seconds


async def _record() -> None:
    """The plan is ours."""


def _nothing(_: object) -> bool:
    """No row of the block is stored."""
    return False


async def test_a_fast_server_has_short_sessions_and_no_announcement(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, 0.01)
    await InsertGuard(server, "token", Renewer(PLAN, _record), SessionLength(), _nothing, repeats=False)()
    assert server.statements == ["session", "pauses"]
    assert server.session == 2


@pytest.mark.parametrize("seconds", [0.6, 1.0, 3.0, 6.0])
async def test_a_slow_server_has_a_session_that_outlasts_the_checks_and_an_announcement(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    server, length = Server(monkeypatch, seconds), SessionLength()
    for _ in range(3):
        server.statements.clear()
        await InsertGuard(server, "token", Renewer(PLAN, _record), length, _nothing, repeats=False)()
        # The announcement comes after the session has begun, and before the look for pauses.
        assert server.statements[-3:] == ["session", "announcement", "pauses"]
        assert server.session > 3 * seconds
    assert server.statements == ["session", "announcement", "pauses"]


async def test_a_server_that_is_fast_again_has_short_sessions_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server, length = Server(monkeypatch, 1.0), SessionLength()
    for server.seconds in (1.0, 0.01, 0.01):
        await InsertGuard(server, "token", Renewer(PLAN, _record), length, _nothing, repeats=False)()
    assert server.statements[-2:] == ["session", "pauses"]
    assert server.session == 2


async def test_a_repeat_waits_for_an_earlier_try_and_then_begins_a_new_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, 0.2)
    monkeypatch.setattr("storage.exactly_once.insert_guard.is_reliable", lambda *_: True)
    monkeypatch.setattr("storage.exactly_once.insert_guard.server_state", lambda _: None)
    monkeypatch.setattr("storage.exactly_once.insert_guard._PAUSED_SECONDS", 0.0)
    for server.tries_left, looks in ((0, ["tries"]), (2, ["tries", "tries", "tries", "session"])):
        server.statements.clear()
        await InsertGuard(server, "token", Renewer(PLAN, _record), SessionLength(), _nothing, repeats=True)()
        assert server.statements == ["session", "pauses", *looks]


async def test_a_repeat_of_a_block_that_is_stored_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    server, length = Server(monkeypatch, 0.0), SessionLength()
    monkeypatch.setattr("storage.exactly_once.insert_guard.is_reliable", lambda *_: True)
    monkeypatch.setattr("storage.exactly_once.insert_guard.server_state", lambda _: None)
    guard = InsertGuard(server, "token", Renewer(PLAN, _record), length, lambda _: True, repeats=False)
    await guard()
    with pytest.raises(TokenUnreliable):
        await guard()


async def test_each_further_try_of_an_insert_has_a_longer_session(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, 0.0)
    guard = InsertGuard(server, "token", Renewer(PLAN, _record), SessionLength(), _nothing, repeats=False)
    monkeypatch.setattr("storage.exactly_once.insert_guard.is_reliable", lambda *_: True)
    monkeypatch.setattr("storage.exactly_once.insert_guard.server_state", lambda _: None)
    sessions = []
    for _ in range(4):
        await guard()
        sessions.append(server.session)
    assert sessions == [2, 2, 4, 8]
