"""Each row of the `linkBy` table, and that the plain value goes nowhere."""

import gc
import hashlib
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import svc
from svc.links import NORMALISERS, link_hashes, normalise
from tests.unit.svc.ingest import Ingest


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("key", "value", "spelled"),
    [
        ("email", "  Jo.Smith@Example.COM ", "jo.smith@example.com"),
        ("phone", "+49 (0) 170 / 123-45", "+49017012345"),
        ("phone", "0170 12345", "+017012345"),
        ("username", " JoSmith\t", "josmith"),
        ("googleSub", " 10Ab ", "10Ab"),
        ("appleSub", " 00.Xy ", "00.Xy"),
        ("metaSub", "\n9Z ", "9Z"),
        ("customerNumber", " AbC 1 ", " AbC 1 "),
    ],
)
def test_value_is_normalised_by_its_key_and_hashed(key: str, value: str, spelled: str) -> None:
    assert link_hashes({key: value}) == {key: sha256(spelled)}


def test_hash_leaves_and_plain_value_does_not(start: Callable[..., Ingest]) -> None:
    ingest = start(identity=True)
    secret = "".join(["quite", ".unheard", ".of", "@example", ".org"])
    svc.set_user({"id": "1", "linkBy": {"email": secret.upper()}})
    svc.capture_exception(ValueError())
    assert svc.flush(10)
    (event,) = ingest.events
    assert event["user"] == {"id": "1", "linkHashes": {"email": sha256(secret)}}
    assert secret not in json.dumps(event).lower()


def test_plain_value_is_not_retained_in_memory(start: Callable[..., Ingest]) -> None:
    class Traced(str):
        """A text whose end can be seen."""

    start(identity=True)
    values = {"email": Traced("x" * 50), "other": Traced("y" * 50)}
    alive = [weakref.ref(value) for value in values.values()]
    svc.set_user({"linkBy": values})
    svc.add_breadcrumb({"message": "m"})
    values.clear()
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_identity_is_off_by_default(start: Callable[..., Ingest], sent: Callable[[], dict[str, Any]]) -> None:
    start()
    svc.set_user({"id": "1", "linkBy": {"email": "jo@example.com"}})
    assert sent()["user"] == {"id": "1"}


def test_empty_values_are_not_linked() -> None:
    assert (
        link_hashes({"email": "  ", "phone": "none", "username": "", "googleSub": " ", "x": "", "y": None})
        == {}
    )


@given(st.sampled_from(sorted(NORMALISERS)), st.text())
def test_normalising_twice_is_normalising_once(key: str, value: str) -> None:
    once = normalise(key, value)
    assert normalise(key, once) == once
