"""The retry rules of section 7 as decisions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import WireError
from svc.answers import Answer, AnswerDecision, Fate, RetryPolicy, parse_answer


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_answer(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, content, 3
    )


def test_202_ends_a_batch() -> None:
    got = answer(202, {"accepted": 3, "rejected": 0, "errors": []})
    assert (got.accepted, got.errors) == (3, ())
    assert RetryPolicy().after(got) == AnswerDecision(Fate.DONE)
    assert RetryPolicy().after(answer(202, {})) == AnswerDecision(Fate.DONE)


def test_partial_202_names_the_rejected() -> None:
    error = {
        "index": 1,
        "error": "validationFailed",
        "details": [{"field": "release", "message": "required"}],
    }
    got = answer(202, {"accepted": 2, "rejected": 1, "errors": [error]})
    assert (got.accepted, got.errors) == (2, (error,))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413])
def test_other_4xx_are_not_retried(status: int) -> None:
    assert RetryPolicy().after(answer(status, {"error": "x"})) == AnswerDecision(Fate.REFUSED)


@pytest.mark.parametrize("status", [500, 502, 503, 599, 0])
def test_5xx_and_silence_are_retried_after_1_2_and_4_seconds_then_given_up(status: int) -> None:
    policy, got = RetryPolicy(), Answer(status)
    assert [policy.after(got) for _ in range(4)] == [
        AnswerDecision(Fate.AGAIN, 1.0),
        AnswerDecision(Fate.AGAIN, 2.0),
        AnswerDecision(Fate.AGAIN, 4.0),
        AnswerDecision(Fate.GIVEN_UP, 0.0),
    ]


def test_longer_retry_after_of_a_503_is_respected() -> None:
    policy, got = RetryPolicy(), answer(503, {"error": "internal"}, Retry_After="3")
    assert [policy.after(got).wait for _ in range(3)] == [3.0, 3.0, 4.0]


def test_429_waits_as_requested_and_backs_off_exponentially() -> None:
    policy, got = RetryPolicy(), answer(429, {"error": "rateLimited", "retryAfterMs": 2500})
    assert [policy.after(got).wait for _ in range(6)] == [2.5, 2.5, 4.0, 8.0, 16.0, 32.0]
    assert policy.after(answer(429, {"retryAfterMs": 3_600_000})).wait == 3600.0
    assert answer(429, {"retryAfterMs": 100}, Retry_After="7").wait == 7.0


def test_429_is_retried_without_an_end_and_a_later_5xx_still_has_its_three() -> None:
    policy = RetryPolicy()
    assert all(policy.after(Answer(429)).fate is Fate.AGAIN for _ in range(100))
    assert [policy.after(Answer(500)).fate for _ in range(4)] == [Fate.AGAIN] * 3 + [Fate.GIVEN_UP]


@pytest.mark.parametrize(
    "got",
    [
        answer(202, b"<html>"),
        answer(202, b""),
        answer(202, [1]),
        answer(202, {"errors": "none"}),
        answer(200, {}),
        answer(302, {}),
        answer(204, b""),
        answer(999, {}),
    ],
)
def test_answer_that_cannot_be_ours_counts_as_none(got: Answer) -> None:
    assert got.status == 0
    assert RetryPolicy().after(got) == AnswerDecision(Fate.AGAIN, 1.0)


@pytest.mark.parametrize("error", WireError)
def test_client_retries_the_errors_that_the_server_calls_retryable(error: WireError) -> None:
    assert (
        RetryPolicy().after(answer(error.status, {"error": error.code})).fate is Fate.AGAIN
    ) is error.retryable


@given(
    st.integers(),
    st.one_of(st.binary(), st.recursive(
        st.one_of(st.none(), st.integers(), st.floats(), st.text()),
        lambda inner: (
            st.dictionaries(st.sampled_from(["errors", "index", "retryAfterMs", "accepted"]), inner) | st.lists(inner)
        ),
    ).map(lambda value: json.dumps(value).encode())),
    st.text(),
)  # fmt: skip
def test_any_answer_is_understood_and_no_wait_is_negative(status: int, body: bytes, retry_after: str) -> None:
    got = parse_answer(status, {"Retry-After": retry_after}, body, 3)
    assert 0 <= got.accepted <= 3
    assert RetryPolicy().after(got).wait >= 0
