"""Under which reason a refused event is counted, and its example: few different names, and nothing of the event."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.refusals import MAX_EXAMPLE, example_of, field_of, reason_of, with_field
from edge.validation.validate import LENIENT, STRICT, InvalidEvents, checked_text, validate
from schemas.errors import Detail
from schemas.limits import Limit
from tests.edge_events import event

TAGS = Detail("tags", Limit.TAG_KEYS.sentence)
ID = "0199c2d4-7d2f-7c3a-9b1e-3f0a5d6c7e80"
SECRET = "hunter2"


@pytest.mark.parametrize(
    ("field", "counted"),
    [
        ("kind", "kind"),
        ("error.stack[17].line", "error.stack.line"),
        ("error.cause.cause.cause.stack[0].file", "error.cause.stack.file"),
        ("tags.anything.a client\nwrote", "tags"),
        ("tags", "tags"),
        ("user.linkHashes.email", "user.linkHashes"),
        ("breadcrumbs[3].data.url", "breadcrumbs.data"),
        ("breadcrumbs[3].timestamp", "breadcrumbs.timestamp"),
    ],
)
def test_a_field_has_no_positions_and_no_keys_of_clients(field: str, counted: str) -> None:
    assert field_of(Detail(field, "expected a string")) == counted


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ([Detail("kind", "required"), TAGS], "tag keys per event"),
        ([Detail("kind", "required"), Detail("tags", "expected an object")], "schema: kind"),
        ([Detail("events", "required")], "events"),
    ],
)
def test_a_limit_is_the_reason_before_other_violations(details: list[Detail], reason: str) -> None:
    assert with_field(reason_of(details), details) == reason


@pytest.mark.parametrize(
    ("sent", "origin"),
    [
        ({"id": ID.upper(), "release": "shop@1.2.3+45"}, f" (release shop@1.2.3+45, event {ID})"),
        ({"id": ID, "release": "a secret"}, f" (event {ID})"),
        ({"id": "a secret", "release": "shop@1+4"}, " (release shop@1+4)"),
        ({"id": 5, "release": {"a": "secret"}}, ""),
        ({"release": "shop@1+" + "x" * 200}, ""),
        ({"release": "shop@1+\u202e4"}, ""),
        ({}, ""),
        ([], ""),
    ],
)
def test_an_example_has_the_response_and_a_valid_release_and_id(sent: Any, origin: str) -> None:
    assert example_of([TAGS], json.dumps(sent).encode()) == "tags: at most 50 tag keys per event" + origin


@pytest.mark.parametrize(
    ("detail", "example"),
    [
        (Detail("error.stack[3].line", "expected an integer"), "error.stack[3].line: expected an integer"),
        (Detail("tags.anna@example.com", "expected a string"), "tags: expected a string"),
        (Detail("user.linkHashes.anna", "expected a string"), "user.linkHashes: expected a string"),
        (Detail("body", f"broken transfer: {SECRET}"), "body: broken transfer"),
        (Detail("event", f"Invalid enum value '{SECRET}' - at `$.kind`"), "event: refused"),
        (Detail("body", "malformed JSON: truncated"), "body: malformed JSON: truncated"),
    ],
)
def test_an_example_repeats_no_key_of_clients_and_no_text_that_may_quote(
    detail: Detail, example: str
) -> None:
    assert example_of([detail]) == example


def test_an_example_is_bounded() -> None:
    long = example_of([Detail("a" * 280, "b" * 280)], json.dumps({"id": ID}).encode())
    assert len(long) == MAX_EXAMPLE
    assert example_of([]) == ""


def secret_values() -> st.SearchStrategy[Any]:
    text = st.sampled_from([SECRET, SECRET * 40, f"{SECRET}@1", 7])
    return st.recursive(
        text, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just(SECRET), inner)
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each value of an event, itself excluded."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in pairs for found in ((*path, key), *places(each, (*path, key)))]


@given(st.data())
def test_no_value_of_a_refused_event_is_in_its_example(data: st.DataObject) -> None:
    sent = event()
    for path in data.draw(st.lists(st.sampled_from(places(event())), min_size=1, max_size=3)):
        at: Any = sent
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = data.draw(secret_values())
        except (TypeError, KeyError, IndexError):
            continue
    sent["tags"] = {SECRET: data.draw(secret_values())}
    body = json.dumps(sent).encode()
    body = body[: data.draw(st.sampled_from([len(body), len(body) // 2, len(body) - 1]))]
    for rules in (STRICT, LENIENT):
        try:
            validate(checked_text(body), rules)
        except InvalidEvents as error:
            example = example_of(error.details, body)
            assert example
            assert SECRET not in example
