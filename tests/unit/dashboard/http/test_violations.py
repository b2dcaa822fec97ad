"""Errors in a request are described in its author's words."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from dashboard.http.violations import detail_of


class Line(Struct, forbid_unknown_fields=True):
    """A part of an order."""

    unit: Literal["box", "piece"]
    number: Annotated[int, Meta(ge=1, le=9)] = 1


class Order(Struct, forbid_unknown_fields=True, rename="camel"):
    """A request with everything that can be wrong in one."""

    lines: Annotated[list[Line], Meta(min_length=1, max_length=2)] = []
    sent_by: Literal["post", "boat"] | None = None
    code: Annotated[str, Meta(pattern="^[0-9a-f]{4}$")] | None = None
    note: Annotated[str, Meta(min_length=1, max_length=3)] | None = None
    weight: float = 0
    express: bool = False
    sums: dict[str, int] = {}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ("[]", "", "expected an object"),
        ('{"by": 1}', "by", "unknown field"),
        ('{"lines": [{}]}', "lines[0].unit", "required"),
        ('{"lines": [{"unit": "box", "x": 1}]}', "lines[0].x", "unknown field"),
        ('{"lines": [{"unit": "ton"}]}', "lines[0].unit", "expected one of: box, piece"),
        ('{"sentBy": "air"}', "sentBy", "expected one of: boat, post"),
        ('{"lines": []}', "lines", "must not be empty"),
        ('{"lines": [{"unit": "box"}, {"unit": "box"}, {"unit": "box"}]}', "lines", "at most 2 entries"),
        ('{"lines": [{"unit": "box", "number": 0}]}', "lines[0].number", "at least 1"),
        ('{"lines": [{"unit": "box", "number": 10}]}', "lines[0].number", "at most 9"),
        ('{"code": "xyz"}', "code", "must match ^[0-9a-f]{4}$"),
        ('{"note": ""}', "note", "must not be empty"),
        ('{"note": "four"}', "note", "at most 3 characters"),
        ('{"note": 4}', "note", "expected a string or null"),
        ('{"weight": "heavy"}', "weight", "expected a number"),
        ('{"express": "no"}', "express", "expected a boolean"),
        ('{"sums": {"a": "b"}}', "sums[...]", "expected an integer"),
    ],
)
def test_a_violation_names_its_field_and_the_expected_value(body: str, field: str, message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=Order)
    detail = detail_of(caught.value, Order)
    assert (detail.field, detail.message) == (field, message)
