from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.view.breadcrumb_lines import timeline
from dashboard.view.event_sections import read
from dashboard.view.stack_view import chain
from tests.unit.dashboard.sample import showcase

AT = 1_760_000_000_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = list(showcase(AT))


def test_own_frames_are_open_and_those_of_libraries_folded() -> None:
    outer, cause = chain(showcase(AT)["error"])
    assert [(group.in_app, group.is_open, len(group.frames)) for group in outer.groups] == [
        (True, True, 2),
        (False, False, 3),
        (True, True, 1),
    ]
    assert cause.type == "TimeoutError"


def test_a_stack_without_own_frames_is_open() -> None:
    error = {"type": "E", "message": "", "stack": [{"file": "a", "line": 1, "inApp": False}]}
    assert chain(error)[0].groups[0].is_open


def test_recursion_is_one_line_with_a_count() -> None:
    frame = {"function": "walk", "file": "tree.js", "line": 3, "inApp": True}
    [group] = chain({"type": "E", "message": "", "stack": [frame] * 49 + [frame | {"line": 9}]})[0].groups
    assert [(one.line, one.times) for one in group.frames] == [(3, 49), (9, 1)]
    assert group.calls == 50


def test_device_clock_is_shown_only_where_it_lies() -> None:
    event = showcase(AT)
    assert "Device clock" not in dict(read(event, "sdk/1", event["timestamp"]).about)
    about = dict(read(event, "sdk/1", "2026-01-01T00:00:00.000Z").about)
    assert about["Device clock"] == "2025-10-09 08:53:20 UTC"


def test_source_is_numbered_around_the_place() -> None:
    context = chain(showcase(AT)["error"])[0].groups[0].frames[0].context
    assert [line.number for line in context] == list(range(210, 218))
    (own,) = [line for line in context if line.is_frame_line]
    assert own.number == 214
    assert (
        own.text + own.marked + own.rest
        == "      const receipt = await this.gateway.request(charge(card, total));"
    )


@pytest.mark.parametrize(
    ("column", "parts"),
    [
        (5, ("x = ", "price", " / count")),
        (11, ("x = price ", "/", " count")),
        (10, ("x = price", "", " / count")),
        (0, ("x = price / count", "", "")),
        (99, ("x = price / count", "", "")),
    ],
)
def test_the_word_at_the_column_is_marked(column: int, parts: tuple[str, str, str]) -> None:
    frame = {"file": "a.py", "line": 7, "column": column, "inApp": True, "contextLine": "x = price / count"}
    ((own,),) = [one.context for one in chain({"stack": [frame]})[0].groups[0].frames]
    assert (own.text, own.marked, own.rest) == parts


def test_breadcrumbs_are_read_by_their_type() -> None:
    crumbs = timeline(showcase(AT))
    assert [(one.kind, one.text, one.detail, one.tone) for one in crumbs] == [
        ("nav", "/cart \u2192 /checkout", "", ""),
        ("net", "GET https://api.example.com/v2/cart/7731", "200 \u00b7 143 ms", ""),
        ("user", "click input#card-number", "", ""),
        ("track", "checkout_step", '{"step": 2, "variant": "B"}', ""),
        ("log", "card brand could not be recognised", "warning", "warn"),
        ("user", "click button#pay", "", ""),
        ("net", "POST https://pay.example.com/v2/charges", "504 \u00b7 8,002 ms", "bad"),
        ("custom", "retry refused", '{"attempt": 3}', ""),
        ("log", "payment was not taken", "error", "bad"),
    ]
    assert [one.when for one in crumbs][-2:] == ["\u221240 ms", "\u221212 ms"]
    assert crumbs[0].when == "\u221241.2 s"


def test_unknown_fields_are_shown() -> None:
    page = read(showcase(AT), "sdk/1")
    assert page.others == '{\n  "cartSize": 4\n}'
    assert [word for word, _ in page.user] == ["Id", "Name", "Anonymous", "Hash of email"]


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_json_where_an_event_should_be_is_read(event: dict[str, Any]) -> None:
    read(event, "sdk/1", "2026-01-01T00:00:00.000Z")


@given(
    st.lists(st.fixed_dictionaries({}, optional={"type": JSON, "timestamp": JSON, "data": JSON}), max_size=3)
)
def test_any_breadcrumb_is_read(crumbs: list[Any]) -> None:
    timeline({"timestamp": "2026-01-01T00:00:00Z", "breadcrumbs": crumbs})
