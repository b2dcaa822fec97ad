"""Reading headers, apart from any request."""

import pytest
from multidict import CIMultiDict

from edge.http.request_headers import named_sdk, read_headers
from tests.unit.edge.delivery.retained import kept_bytes

LONG = "application/json; charset=" + "x" * 30_000


def test_long_content_types_are_read_and_not_kept() -> None:
    def read(number: int) -> None:
        given = {"Svc-Sdk": "a/1", "Content-Type": f"{LONG}{number}", "Content-Encoding": "gzip"}
        assert read_headers(CIMultiDict(given)).gzip

    assert kept_bytes(read) < 1 << 20


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("svc-js/1", "svc-js/1"),
        ("\udcff/1", "?/1"),
        ("\ud83d\ude00/1", "??/1"),
        ("\u00e4/1", "\u00e4/1"),
        ("x" * 300, "x" * 200),
    ],
)
def test_sdk_of_a_refusal_is_text_of_bounded_length(header: str, named: str) -> None:
    assert named_sdk(CIMultiDict({"Svc-Sdk": header})) == named
    assert named_sdk(CIMultiDict()) == ""
