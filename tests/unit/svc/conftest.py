"""Every test starts and ends with a library that was never initialised, and without our variables."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import svc
from svc import reporting
from svc.client import current
from svc.notices import Notices
from tests.unit.svc.ingest import Ingest, ingest_server

TOKEN = "svc_pk_06a5w3rh1txqv8n1r9c2m4y7k0"


def given_tags(event: dict[str, Any]) -> dict[str, str]:
    """The event's tags without those that the library adds by default; `test_own_tags.py` is about these."""
    own = {"handled", "method", "route", "url", "thread"}
    return {key: value for key, value in event.get("tags", {}).items() if key not in own}


@pytest.fixture(autouse=True)
def _untouched_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SVC_TOKEN", "SVC_INGEST_URL", "SVC_TOKEN_FILE", "SVC_INGEST_URL_FILE"):
        monkeypatch.delenv(name, raising=False)
    svc.close(0)
    reporting._State.notices = Notices()
    yield
    svc.close(0)


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    """A server that accepts everything."""
    with ingest_server() as running:
        yield running


@pytest.fixture
def start(ingest: Ingest) -> Callable[..., Ingest]:
    """Initialise the library towards that server; further options by keyword."""

    def init(**options: Any) -> Ingest:
        given = {
            "token": TOKEN,
            "release": "shop@1.4.2+318",
            "ingest_url": ingest.url,
            "flush_interval": 0.05,
        }
        svc.init(**{**given, **options})
        return ingest

    return init


@pytest.fixture
def sent(start: Callable[..., Ingest], ingest: Ingest) -> Callable[[], dict[str, Any]]:
    """Capture an error now; the event as the server got it."""

    def capture() -> dict[str, Any]:
        if current() is None:
            start()
        event_id = svc.capture_exception(ValueError("a value"))
        assert svc.flush(10)
        return next(event for event in ingest.events if event["id"] == event_id)

    return capture
