"""The plain value of `linkBy` goes nowhere. Cases: `tests/unit/libraries`."""

import gc
import hashlib
import json
import weakref
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

import svc
from svc.links import NORMALISERS, normalise
from tests.unit.svc.ingest import Ingest


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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


@given(st.sampled_from(sorted(NORMALISERS)), st.text())
def test_normalising_twice_is_normalising_once(key: str, value: str) -> None:
    once = normalise(key, value)
    assert normalise(key, once) == once
