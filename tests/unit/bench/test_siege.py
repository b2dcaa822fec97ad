"""The verdict of a siege, and its hostile bodies."""

import gzip
from math import inf

import pytest

from bench.edge_load import LoadResult
from bench.siege import bodies, verdict
from bench.siege.attack import Target, attacks, is_under_way
from bench.siege.honest import Window, window
from edge.http.inflate import inflate
from edge.request_errors import RequestError
from edge.validation.validate import STRICT, InvalidEvents, checked_text, validate

MEGABYTE = 1_048_576


def at(ms: float, refused: int = 0) -> Window:
    return Window([ms / 1000] * 10, {503: refused} if refused else {})


def test_delays_may_grow_by_a_quarter_and_the_noise_of_the_run() -> None:
    quiet = [at(20), at(24), at(18)]
    assert verdict.delays(quiet, [at(30)]).allowed == pytest.approx(31)
    assert verdict.delays(quiet, [at(10), at(30), at(90)]).hold
    assert not verdict.delays(quiet, [at(10), at(31), at(90)]).hold


@pytest.mark.parametrize(
    ("windows", "memory_mb", "restarts", "errors", "held"),
    [
        ([at(1)], (50, 306, 82), 0, 0, True),
        ([at(1), at(1, refused=1)], (50, 50, 50), 0, 0, False),
        ([at(1)], (50, 307, 50), 0, 0, False),
        ([at(1)], (50, 90, 83), 0, 0, False),
        ([Window([0.001], {}, behind=31)], (50, 50, 50), 0, 0, False),
        ([Window([0.001], {}, pages=(0.1, inf))], (50, 50, 50), 0, 0, False),
        ([Window([0.001], {}, behind=30, pages=(30,))], (50, 50, 50), 0, 0, True),
        ([at(1)], (50, 50, 40), 1, 0, False),
        ([at(1)], (50, 50, 40), 0, 1, False),
    ],
)
def test_a_refusal_memory_a_restart_a_500_and_a_late_event_or_page_is_harm(
    windows: list[Window], memory_mb: tuple[float, float, float], restarts: int, errors: int, held: bool
) -> None:
    assert all(claim.holds for claim in verdict.claims(windows, memory_mb, restarts, errors)) == held


def test_request_without_an_answer_counts_as_refused() -> None:
    assert window(LoadResult(1.0, {202: 8, 429: 1}, [0.1] * 9), 10).refused == {429: 1, 0: 1}
    assert window(LoadResult(1.0, {202: 10}, [0.1] * 10), 10).refused == {}


@pytest.mark.parametrize("body", [*bodies.repairs(), *bodies.nestings()])
def test_hostile_bodies_fit_and_are_decided(body: bytes) -> None:
    whole = inflate(body)
    assert MEGABYTE // 2 < len(whole) <= MEGABYTE
    try:
        validate(checked_text(whole), STRICT)
    except InvalidEvents as refused:
        assert "body" not in {d.field for d in refused.details} or b"[" * 500_000 in whole  # noqa: PT017


def test_near_duplicates_are_valid_and_each_is_its_own() -> None:
    first, second = bodies.near_duplicate(1), bodies.near_duplicate(2)
    assert first != second
    for body in (first, second):
        validate(checked_text(body), STRICT)


def test_bombs_are_small_and_inflate_to_the_limit_or_past_it() -> None:
    for body in bodies.bombs():
        assert len(body) < 70_000
        try:
            assert len(inflate(body)) > MEGABYTE - 100
        except RequestError as fault:
            assert fault.error.status == 413  # noqa: PT017
    assert gzip.decompress(bodies.bombs()[1]).startswith(b"{")


def test_an_attack_is_under_way_once_each_form_is_answered_as_it_wants_to_be() -> None:
    every = {name: {"429": 1} for name in attacks(Target(1, "token", "limited", "flooding", ("declaring",)))}
    assert is_under_way(every)
    assert is_under_way(every | {"slow heads": {}, "declared bodies": {}, "repairs": {"202": 3}})
    assert is_under_way(every | {"half heads": {"closed": 1}})
    assert not is_under_way(every | {"half heads": {}})
    assert not is_under_way(every | {"wrong tokens": {}})
    assert not is_under_way(every | {"past the rate limit": {"202": 90, "closed": 1, "not connected": 1}})
