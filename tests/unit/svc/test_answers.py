"""Answers beyond the cases of all libraries (`tests/unit/libraries`)."""

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


def test_partial_202_names_the_rejected() -> None:
    error = {
        "index": 1,
        "error": "validationFailed",
        "details": [{"field": "release", "message": "required"}],
    }
    got = answer(202, {"accepted": 2, "rejected": 1, "errors": [error]})
    assert (got.accepted, got.errors) == (2, (error,))


@pytest.mark.parametrize(
    "got",
    [
        answer(202, [1]),
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
