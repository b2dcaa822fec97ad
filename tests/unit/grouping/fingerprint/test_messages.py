"""Templates keep a programmer's words and drop the values that a machine filled in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint.messages import headline, template

LOGGED = {
    "Order <*> not found": ["Order 665147 not found", "Order A-17/b not found", "Order 0x1f not found"],
    "job <*> lost": ["job 5f0c1f9e-33d4-4b8a-9d55-0f6f5f1c2a11 lost", "job deadbeefcafe lost"],
    "mail to <<*>> refused": [
        "mail to <mila@example.com> refused",
        "mail to <ops+night@example.org> refused",
    ],
    "cannot open <*>": [
        "cannot open /srv/in/a.csv",
        r"cannot open C:\srv\in\b.csv",
        "cannot open '/x y'",
        'cannot open "z"',
    ],
    "took <*>": ["took 30 ms", "took 1.5s", "took 3,000 seconds", "took 12 MB"],
    "see <*> for more": ["see https://example.com/a?b=c for more", "see wss://example.org/room/7 for more"],
    "at <*>": ["at Fri Jun 17 07:07:00 2005", "at 2025-10-01T10:00:00Z", "at 17 Jun 2005"],
    "session closed for user <*>": ["session closed for user root", "session closed for user deploy"],
    "flags ready=<*> open=<*>": ["flags ready=true open=false", "flags ready= open=yes"],
    "<*> GET took <*>": ['"GET /api/stock/81 HTTP/1.1" took 30 ms', '"GET /b HTTP/1.1" took 9 ms'],
    "class <*> is unknown": [
        "class com.example.net.Socket is unknown",
        "class org.other.Part$Inner is unknown",
    ],
    "status: <*>": ["status: 404", "status: 500"],
    "first second": ["first\nsecond\nthird 7", "first\nsecond"],
}


@pytest.mark.parametrize(
    ("expected", "message"), [(key, one) for key, messages in LOGGED.items() for one in messages]
)
def test_varying_parts_are_replaced(expected: str, message: str) -> None:
    assert template(message) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Order 1 not found", "Order 1 expired"),
        ('"GET /a HTTP/1.1" failed', '"POST /a HTTP/1.1" failed'),
        ("java.lang.IllegalStateException in worker", "java.lang.NullPointerException in worker"),
        ("it's open and that's it", "it's shut and that's it"),
    ],
)
def test_values_that_distinguish_faults_stay(one: str, other: str) -> None:
    assert template(one) != template(other)


def test_a_thrown_message_keeps_its_error_code() -> None:
    assert headline("Request 81 failed with status code 404") == "Request <*> failed with status code 404"
    assert headline("Request 81 failed with status code 500") != headline(
        "Request 81 failed with status code 404"
    )
    assert headline("Minified error #31; visit https://a.b/?c=31") == "Minified error #31; visit <*>"


def test_a_thrown_message_is_its_first_line() -> None:
    assert headline("cannot parse\nline 3: x") == "cannot parse"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("worker 7 exited with code 137", "worker <*> exited with code 137"),
        ("write of 4096 bytes failed: errno 28", "write of <*> failed: errno 28"),
        ("job 12 stopped by ORA-00060", "job <*> stopped by ORA-00060"),
        (
            "login of 7 rejected reason=AuthFail attempts=3",
            "login of <*> rejected reason=AuthFail attempts=<*>",
        ),
        ('duplicate key 7 violates "users_email_key"', 'duplicate key <*> violates "users_email_key"'),
        ('unknown colour "dark red"', "unknown colour <*>"),
        ("error:0A000410:SSL routines::bad handshake", "error bad handshake"),
        ("order 12 \ue000 lost with code 5", "order <*> lost with code 5"),
        ("order 12 \ue000 lost", "order <*> lost"),
        ("'code 5' refused reason=Quota", "<*> refused reason=Quota"),
        ("retry={code 5} refused by ORA-00060", "retry=<*> refused by ORA-00060"),
    ],
)
def test_telling_values_stay_in_templates(message: str, expected: str) -> None:
    assert template(message) == expected


@given(st.text(st.sampled_from("code 5=reason'\"_:\ue000ORA-0123456789\n"), max_size=120))
def test_no_message_is_an_error(message: str) -> None:
    template(message)
    headline(message)


@given(st.text())
def test_any_text_gives_a_short_single_line(message: str) -> None:
    for text in (template(message), headline(message)):
        assert len(text) <= 300
        assert "\n" not in text


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_numbers_never_matter(one: int, other: int) -> None:
    assert template(f"row {one} of {other}") == template("row 1 of 2")
