"""The reasons on the page of an issue are those of the event that is stored."""

import json

import pytest
from msgspec import Raw

from dashboard.view.why_grouped import why_grouped
from tests.unit.grouping.fingerprint.events import event, frame, grouped

SENT = event(stack=[frame("pay", "src/pay.js")])


def test_an_event_has_reasons_if_it_leads_to_the_stored_fingerprint() -> None:
    body = Raw(json.dumps(SENT).encode())
    found = why_grouped(body, "stack", grouped(SENT).hex)
    assert found[0] == "`pay in pay.js` decided: the topmost frame of the app."
    assert why_grouped(body, "stack", "00000000000001ff") == []
    assert why_grouped(body, "rule:mine", "00000000000001ff") == ["The project's rule `mine` decided."]


@pytest.mark.parametrize("body", [None, Raw(b"{"), Raw(b"[1]")])
def test_without_a_payload_that_decodes_there_is_none(body: Raw | None) -> None:
    assert why_grouped(body, "stack", "00000000000001ff") == []
