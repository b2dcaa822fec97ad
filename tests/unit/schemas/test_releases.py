"""The parts of a release are those that the schema asks for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.event import RELEASE_PATTERN
from schemas.releases import ReleaseParts, split_release


@pytest.mark.parametrize(
    ("release", "parts"),
    [
        ("shop@1.2.3+45", ("shop", "1.2.3", "45")),
        ("@scope/app@1.0.0+7", ("@scope/app", "1.0.0", "7")),
        ("My App@1.0+3", ("My App", "1.0", "3")),
        ("shop@1.0+a+b@c", ("shop", "1.0", "a+b@c")),
        ("shop@1.2.3", ("shop", "1.2.3", "")),
        ("1.2.3", ("", "1.2.3", "")),
        ("shop+45", ("", "shop", "45")),
    ],
)
def test_first_plus_and_the_last_at_before_it_part_a_release(
    release: str, parts: tuple[str, str, str]
) -> None:
    assert split_release(release) == ReleaseParts(*parts)


@given(st.text(alphabet="a1.@+/ \n") | st.text())
def test_the_schema_takes_releases_with_all_three_parts(release: str) -> None:
    assert bool(re.search(RELEASE_PATTERN, release)) == all(split_release(release))
