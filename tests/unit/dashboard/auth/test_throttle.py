"""The sign-in throttle, with a clock by hand: guessing is bounded, and other addresses are not locked out."""

from hypothesis import given
from hypothesis import strategies as st

from dashboard.auth.throttle import (
    DELAY_SECONDS,
    KNOWN_SECONDS,
    MAX_ADDRESSES,
    MAX_FAILURES,
    MAX_FAILURES_KNOWN,
    MAX_FAILURES_TOTAL,
    WINDOW_SECONDS,
    SignInThrottle,
    ThrottleDecision,
)

FREE = ThrottleDecision()


def fail(throttle: SignInThrottle, address: str, times: int, now: float) -> None:
    for number in range(times):
        throttle.failed(address, f"{now} {number}", now)


def attack(throttle: SignInThrottle, now: float) -> None:
    """From so many addresses that none of them is at its own limit."""
    for number in range(MAX_FAILURES_TOTAL):
        throttle.failed(f"bot{number}", str(number), now)


def test_an_address_at_its_limit_waits_until_the_first_failure_has_left_the_window() -> None:
    throttle = SignInThrottle()
    fail(throttle, "a", MAX_FAILURES - 1, 0)
    assert throttle.check("a", 5) == FREE
    fail(throttle, "a", 1, 5)
    assert throttle.check("a", 10) == ThrottleDecision(wait_seconds=WINDOW_SECONDS - 10)
    assert throttle.check("b", 10) == FREE
    assert throttle.check("a", WINDOW_SECONDS) == FREE


def test_the_same_wrong_password_counts_once() -> None:
    throttle = SignInThrottle()
    for now in range(3 * MAX_FAILURES_TOTAL):
        throttle.failed("a", "the old one", now / 10)
    assert throttle.check("a", 30) == FREE
    assert throttle.check("b", 30) == FREE


def test_a_right_password_does_not_wipe_out_the_guesses_of_others_at_its_address() -> None:
    throttle = SignInThrottle()
    for now in range(MAX_FAILURES_KNOWN):
        throttle.succeeded("a", now / 10)
        fail(throttle, "a", 1, now / 10)
    assert throttle.check("a", 10).wait_seconds > 0


def test_an_attack_from_many_addresses_delays_those_who_have_not_failed_and_refuses_those_who_have() -> None:
    throttle = SignInThrottle()
    throttle.succeeded("known", 0)
    attack(throttle, 1)
    assert throttle.check("fresh", 2) == ThrottleDecision(delay_seconds=DELAY_SECONDS)
    assert throttle.check("bot7", 2) == ThrottleDecision(wait_seconds=WINDOW_SECONDS - 1)
    assert throttle.check("known", 2) == FREE
    assert throttle.check("fresh", WINDOW_SECONDS + 1) == FREE


def test_an_address_is_known_for_a_day() -> None:
    throttle = SignInThrottle()
    throttle.succeeded("a", 0)
    for now in (KNOWN_SECONDS - 1, KNOWN_SECONDS):
        fail(throttle, "a", MAX_FAILURES, now)
    assert throttle.check("a", KNOWN_SECONDS - 1) == FREE
    assert throttle.check("a", KNOWN_SECONDS).wait_seconds > 0


def test_memory_is_bounded() -> None:
    throttle = SignInThrottle()
    for number in range(MAX_ADDRESSES + 5):
        throttle.failed(str(number), "x", 0)
        throttle.succeeded(str(number), 0)
    assert len(throttle._failures) == len(throttle._known) == MAX_ADDRESSES


attempts = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 30)), max_size=300)


@given(attempts)
def test_an_address_without_a_failure_is_never_refused(given_attempts: list[tuple[str, bool, int]]) -> None:
    throttle, now = SignInThrottle(), 0.0
    for number, (address, right, later) in enumerate(given_attempts):
        now += later / 10
        assert throttle.check("never failed", now).wait_seconds == 0
        if throttle.check(address, now).wait_seconds:
            continue
        if right:
            throttle.succeeded(address, now)
        else:
            throttle.failed(address, str(number), now)


@given(attempts)
def test_within_a_window_no_address_tries_more_than_its_limit(
    given_attempts: list[tuple[str, bool, int]],
) -> None:
    throttle, now = SignInThrottle(), 0.0
    tried: dict[str, list[float]] = {}
    for number, (address, _, later) in enumerate(given_attempts):
        now += later / 10
        decision = throttle.check(address, now)
        if not decision.wait_seconds:
            throttle.failed(address, str(number), now)
            tried.setdefault(address, []).append(now)
        assert 0 <= decision.wait_seconds <= WINDOW_SECONDS
        assert sum(at > now - WINDOW_SECONDS for at in tried.get(address, [])) <= MAX_FAILURES
