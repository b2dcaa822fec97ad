"""Memory for bodies: a declared length takes none, and in a full one the token that holds most is stopped."""

import pytest

from edge.limits.body_budget import BodyBudget, BodyReservation
from edge.request_errors import RequestError
from schemas.errors import WireError


def receive(budget: BodyBudget, token: str, size: int, stopped: list[str]) -> BodyReservation:
    """A body of which `size` bytes have come; the token is in `stopped` once it has given way."""
    body = budget.reservation(token)
    body.begin(lambda: stopped.append(token))
    body.add_bytes(size)
    return body


def test_declared_bytes_take_no_memory_and_a_body_beyond_the_share_is_refused_before_it_is_read() -> None:
    budget = BodyBudget(1000, 100)
    for _ in range(100):
        budget.reservation("a").check(100)
    with budget.reservation("a") as body:
        body.add_bytes(60)
        assert budget.total == 60
        with pytest.raises(RequestError) as refused:
            budget.reservation("a").check(50)
    assert refused.value.error is WireError.RATE_LIMITED
    assert budget.total == 0


def test_full_memory_is_left_by_the_token_that_holds_most_its_oldest_body_first() -> None:
    budget, stopped = BodyBudget(1000, 1000), list[str]()
    bodies = [receive(budget, token, 100, stopped) for token in "abababacac"]
    honest = receive(budget, "honest", 30, stopped)
    assert stopped == ["a"]
    assert budget.total == 930
    receive(budget, "honest", 90, stopped)
    assert stopped == ["a", "a"]
    with pytest.raises(RequestError) as gave_way:
        bodies[0].end()
    assert gave_way.value.error is WireError.UNAVAILABLE
    with pytest.raises(RequestError):
        bodies[2].add_bytes(1)
    honest.end()
    for body in bodies[2:]:
        body.__exit__(None, None, None)
    assert budget.total == 220


@pytest.mark.parametrize("greedy", [1, 9, 100])
def test_token_that_holds_little_finds_room_despite_any_number_of_greedy_ones(greedy: int) -> None:
    budget, stopped = BodyBudget(1000, 1000), list[str]()
    for number in range(1000):
        receive(budget, str(number % greedy), 1, stopped)
    assert budget.total == 1000
    for _ in range(1000 // greedy // 2):
        receive(budget, "honest", 1, stopped)
    assert "honest" not in stopped


def test_token_that_holds_most_is_refused_itself() -> None:
    budget, stopped = BodyBudget(1000, 1000), list[str]()
    receive(budget, "a", 400, stopped)
    receive(budget, "b", 600, stopped)
    with pytest.raises(RequestError) as refused:
        receive(budget, "b", 1, stopped)
    assert refused.value.error is WireError.UNAVAILABLE
    assert stopped == []


def test_bodies_that_are_complete_stay() -> None:
    budget, stopped = BodyBudget(1000, 1000), list[str]()
    receive(budget, "a", 1000, stopped).end()
    with pytest.raises(RequestError):
        receive(budget, "b", 1, stopped)
    assert stopped == []
