"""The same fault in the words of every engine has one key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint.faults import fault, is_weak
from tests.unit.grouping.fingerprint.events import event, grouped

SAME = {
    "null.price": [
        "Cannot read properties of undefined (reading 'price')",
        "Cannot read properties of null (reading 'price')",
        "Cannot read property 'price' of undefined",
        "Cannot set properties of undefined (setting 'price')",
        'can\'t access property "price", line.product is undefined',
        "undefined is not an object (evaluating 'line.product.price')",
        "null is not an object (evaluating 'f(a, [b]).price')",
        "undefined is not an object (evaluating 'line.price = 3')",
        "'null' is not an object (evaluating 'x.price')",
        "Unable to get property 'price' of undefined or null reference",
        "Cannot destructure property 'price' of 'line' as it is undefined.",
    ],
    "null.[]": [
        "Cannot read properties of undefined (reading '0')",
        "can't access property 0, rows is undefined",
        "undefined is not an object (evaluating 'rows[0]')",
        "undefined is not an object (evaluating 'rows[i]')",
        "Cannot convert undefined value to object",
        "Cannot convert undefined or null to object",
        "can't convert null to object",
        "undefined is not an object (evaluating 'Object.keys(rows)')",
    ],
    "call.total": [
        "cart.total is not a function",
        "(intermediate value).total is not a function",
        "cart.total is not a function. (In 'cart.total()', 'cart.total' is undefined)",
        "Object doesn't support property or method 'total'",
    ],
    "call.": [
        "undefined is not a function",
        "'ping' is not a function",
        "f is not a function",
        "Object is not a function",
    ],
    "new.Row": [
        "grid.Row is not a constructor",
        "grid.Row is not a constructor (evaluating 'new grid.Row()')",
    ],
    "undeclared.cart": [
        "cart is not defined",
        "Can't find variable: cart",
        "Property 'cart' doesn't exist",
        "'cart' is undefined",
    ],
    "stack overflow": [
        "Maximum call stack size exceeded",
        "Maximum call stack size exceeded.",
        "too much recursion",
        "Maximum call stack size exceeded (native stack depth)",
    ],
    "not iterable": [
        "rows is not iterable",
        "undefined is not iterable (cannot read property Symbol(Symbol.iterator))",
        "undefined is not a function (near '...[a, b]...')",
        "iterator method is not callable",
    ],
    "bad JSON": [
        "Unexpected token < in JSON at position 0",
        "Unexpected token '<', \"<!doctype \"... is not valid JSON",
        "Unexpected end of JSON input",
        "JSON.parse: unexpected character at line 1 column 1 of the JSON data",
        "JSON Parse error: Unrecognized token '<'",
        "Expected double-quoted property name in JSON at position 14",
    ],
    "malformed URI": ["URI malformed", "URI error", "malformed URI sequence", "Malformed decodeURI input"],
    "invalid date": ["Invalid time value", "invalid date", "Invalid Date", "Date value out of bounds"],
    "array length": [
        "Invalid array length",
        "invalid array length",
        "Array size is not a small enough positive integer.",
    ],
    "cyclic JSON": [
        "Converting circular structure to JSON\n    --> starting at object with constructor 'Object'",
        "cyclic object value",
        "JSON.stringify cannot serialize cyclic structures.",
    ],
    "read-only": [
        "Assignment to constant variable.",
        "Attempted to assign to readonly property.",
        "invalid assignment to const 'a'",
        "Cannot assign to read only property 'a' of object '#<Object>'",
        '"a" is read-only',
    ],
    "access before initialization": [
        "Cannot access 'a' before initialization",
        "can't access lexical declaration 'a' before initialization",
        "Cannot access uninitialized variable.",
    ],
    "reduce of empty array": [
        "Reduce of empty array with no initial value",
        "reduce of empty array with no initial value",
    ],
    "fetch failed": [
        "Failed to fetch",
        "Load failed",
        "NetworkError when attempting to fetch resource.",
        "Network request failed",
        "Failed to fetch (api.example.com)",
    ],
    "aborted": [
        "The user aborted a request.",
        "signal is aborted without reason",
        "The operation was aborted. ",
        "Fetch is aborted",
        "This operation was aborted",
    ],
    "script error": ["Script error.", "Script error"],
    "resize observer": [
        "ResizeObserver loop limit exceeded",
        "ResizeObserver loop completed with undelivered notifications.",
    ],
}


@pytest.mark.parametrize(
    ("key", "message"), [(key, message) for key, messages in SAME.items() for message in messages]
)
def test_engines_agree(key: str, message: str) -> None:
    assert fault("TypeError", message) == key


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Order 12 not found",
        "user is not defined in the directory",
        "price is undefined",
        "Not a function of time",
        "boom",
    ],
)
def test_messages_of_an_application_are_no_engine_errors(message: str) -> None:
    assert fault("TypeError", message) is None


@pytest.mark.parametrize(
    ("key", "weak"), [("null.price", False), ("null.[]", True), ("call.", True), ("bad JSON", True)]
)
def test_an_error_without_a_name_is_weak(key: str, weak: bool) -> None:
    assert is_weak(key) is weak


@pytest.mark.parametrize("key", ["fetch failed", "aborted", "script error", "resize observer"])
def test_engines_that_show_no_stack_agree_all_the_same(key: str) -> None:
    found = {grouped(event("Error", message)).parts for message in SAME[key]}
    assert found == {("type engine error", f"fault {key}")}


def test_without_a_stack_a_weak_error_counts_less_than_specific_words() -> None:
    found = grouped(event("TypeError", "total is not a function"))
    assert found.parts == ("type TypeError", "message total is not a function")


@given(st.text(max_size=600))
def test_any_text_is_answered(message: str) -> None:
    assert fault("TypeError", message) is None or fault("TypeError", message)
