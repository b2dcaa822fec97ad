"""URLs lose credentials, whatever is around them. Cases: `tests/unit/libraries`."""

from hypothesis import given
from hypothesis import strategies as st

from svc.urls import scrub


@given(
    st.text(),
    st.sampled_from(
        ["token", "key", "password", "secret", "API_KEY", "refreshToken", "db.password", "client-secret"]
    ),
    st.text(),
)
def test_value_of_a_secret_never_survives(before: str, name: str, after: str) -> None:
    secret = "Zq9-the-value-Zq9"
    assert secret not in scrub(f"http://h/{before}?{after}&{name}={secret}&x=1")


@given(st.text())
def test_scrubbing_twice_is_scrubbing_once(url: str) -> None:
    assert scrub(scrub(url)) == scrub(url)
