"""The Python library passes the cases of all libraries."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

import svc
from svc.answers import Fate, RetryPolicy, parse_answer
from svc.breadcrumbs import breadcrumb_on_wire, to_breadcrumb
from svc.event import fit_event
from svc.links import link_hashes
from svc.urls import scrub
from tests.unit.libraries.cases import CASES
from tests.unit.svc.conftest import given_tags
from tests.unit.svc.ingest import Ingest

Start = Callable[..., Ingest]


def scope_of(event: dict[str, Any]) -> dict[str, Any]:
    """The parts of an event that the scope decides, as in the cases."""
    crumbs = [[crumb["type"], crumb["data"]] for crumb in event.get("breadcrumbs", [])]
    scope = {"tags": given_tags(event), "breadcrumbs": crumbs} | {
        key: event.get(key) for key in ("user", "fingerprint")
    }
    return {key: value for key, value in scope.items() if value}


def called(calls: list[list[Any]]) -> None:
    for name, *arguments in calls:
        getattr(svc, name)(*arguments)


@pytest.mark.parametrize("case", CASES["scope"], ids=lambda case: case["name"])
def test_calls_of_the_scope_decide_the_event(case: dict[str, Any], start: Start) -> None:
    sent = start(**case.get("options", {}))
    called(case["calls"])
    svc.captureException(ValueError(), **case.get("capture", {}))
    if "later" in case:
        svc.captureException(ValueError())
    assert svc.flush(10)
    assert [scope_of(event) for event in sent.events] == [
        case[key] for key in ("event", "later") if key in case
    ]


def test_tags_beyond_the_limit_are_left_out(start: Start) -> None:
    sent = start()
    svc.setTags({f"key{n}": "v" for n in range(CASES["tagLimit"]["given"])})
    svc.captureException(ValueError())
    assert svc.flush(10)
    kept = CASES["tagLimit"]["kept"]
    assert sent.events[0]["tags"] == {f"key{n}": "v" for n in range(kept)}


@pytest.mark.parametrize("case", CASES["ring"])
def test_a_full_ring_drops_its_oldest(case: dict[str, int], start: Start) -> None:
    start(breadcrumbCapacity=case["capacity"])
    for n in range(case["added"]):
        svc.addBreadcrumb({"message": str(n)})
    kept = [str(n) for n in range(case["first"], case["added"])]
    assert [crumb["message"] for crumb in svc.getBreadcrumbs()] == kept


@pytest.mark.parametrize("case", CASES["breadcrumbs"], ids=lambda case: json.dumps(case["client"])[:60])
def test_client_breadcrumb_becomes_the_wires(case: dict[str, Any]) -> None:
    made = breadcrumb_on_wire(to_breadcrumb(0, case["client"]))
    assert [made["type"], made["data"]] == case["wire"]


@pytest.mark.parametrize("case", CASES["linkBy"], ids=lambda case: f"{case['key']}-{case['value']!a}")
def test_value_is_normalised_by_its_key_and_hashed(case: dict[str, Any]) -> None:
    text = case["hashed"]
    hashes = {} if text is None else {case["key"]: hashlib.sha256(text.encode()).hexdigest()}
    assert link_hashes({case["key"]: case["value"]}) == hashes


@pytest.mark.parametrize(("url", "left"), CASES["masking"])
def test_secret_parts_of_urls_are_masked(url: str, left: str) -> None:
    assert scrub(url) == left


@pytest.mark.parametrize("case", CASES["retries"], ids=lambda case: case["name"])
def test_answers_decide_when_a_batch_is_repeated(case: dict[str, Any]) -> None:
    policy = RetryPolicy()
    waits: list[float | None] = []
    for answer in case["answers"]:
        headers = {"Retry-After": answer["retryAfter"]} if "retryAfter" in answer else {}
        body = answer.get("text", json.dumps(answer.get("body", {}))).encode()
        decision = policy.after(parse_answer(answer["status"], headers, body, 3))
        waits.append(decision.wait * 1000 if decision.fate is Fate.AGAIN else None)
    assert waits == case["waitsMs"]


def nested(depth: int) -> None:
    if depth > 1:
        nested(depth - 1)
    raise LookupError


@pytest.mark.parametrize("case", CASES["trimming"]["frames"], ids=lambda case: str(case["given"]))
def test_a_long_stack_loses_its_middle(case: dict[str, Any], start: Start) -> None:
    sent = start()
    try:
        nested(case["given"] - 1)
    except LookupError as error:
        svc.captureException(error)
    assert svc.flush(10)
    (event,) = sent.events
    assert len(event["error"]["stack"]) == min(case["given"], 100)
    # Fifty from each end: the caller is still there.
    assert event["error"]["stack"][-1]["function"] == "test_a_long_stack_loses_its_middle"
    assert event["tags"].get("trimmed") == case["trimmed"]


@pytest.mark.parametrize("case", CASES["trimming"]["causes"], ids=lambda case: str(case["given"]))
def test_a_long_chain_loses_its_end(case: dict[str, Any], start: Start) -> None:
    sent = start()
    error = ValueError(str(case["given"]))
    for n in reversed(range(case["given"])):
        cause, error = error, ValueError(str(n))
        error.__cause__ = cause
    svc.captureException(error)
    assert svc.flush(10)
    (event,) = sent.events
    messages = []
    link = event["error"]
    while link:
        messages.append(link["message"])
        link = link.get("cause")
    assert messages == [str(n) for n in range(case["kept"] + 1)]
    assert event["tags"].get("trimmed") == case["trimmed"]


def test_a_long_message_is_cut(start: Start) -> None:
    sent = start()
    svc.captureException(ValueError("m" * CASES["trimming"]["messageChars"]["given"]))
    assert svc.flush(10)
    kept = CASES["trimming"]["messageChars"]["kept"]
    assert sent.events[0]["error"]["message"] == "m" * (kept - 1) + "…"


@pytest.mark.parametrize("case", CASES["trimming"]["events"], ids=lambda case: str(case["limit"]))
def test_a_large_event_is_reduced_and_says_so(case: dict[str, Any]) -> None:
    crumb = {"timestamp": "2026-01-31T12:00:00.000Z", "type": "custom"}
    event: dict[str, Any] = {
        "tags": {f"key{n}": "v" for n in range(case["tags"])},
        "error": {
            "type": "Error",
            "message": "m" * case["messageChars"],
            "stack": [
                {"function": "f", "file": "f.js", "line": n + 1, "inApp": True} for n in range(case["frames"])
            ],
        },
    }
    if case["breadcrumbs"]:
        data = {"message": "b" * case["breadcrumbChars"]}
        event["breadcrumbs"] = [{**crumb, "data": data} for _ in range(case["breadcrumbs"])]
    encoded = fit_event(event, case["limit"])
    if encoded is None or case["left"] is None:
        assert encoded is case["left"]
        return
    assert len(encoded) <= case["limit"]
    left = json.loads(encoded)
    assert case["left"] == {
        "breadcrumbs": len(left.get("breadcrumbs", [])),
        "messageChars": len(left["error"]["message"]),
        "frames": len(left["error"]["stack"]),
        "trimmed": left["tags"].get("trimmed"),
    }
