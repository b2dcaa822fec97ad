"""Bodies byte for byte (protocol, sections 4.3 and 7), the rate limit as a client sees it, lenient projects, health."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from edge.delivery.publisher import EventPublisher
from schemas.projects import Project
from tests.contract.edge.live_edge import LiveEdge
from tests.edge_events import encoded, event


@pytest.mark.holds("protocol 4.3")
async def test_validation_error_has_its_exact_body(edge: LiveEdge) -> None:
    answer = await edge.post(encoded(kind="x", environment=None))
    assert answer.status == 400
    assert answer.body == (
        b'{"error":"validationFailed","details":[{"field":"kind","message":"expected one of: error"},'
        b'{"field":"environment","message":"required"}]}'
    )


@pytest.mark.holds("protocol 8")
async def test_batch_is_one_request_of_the_rate_limit(edge: LiveEdge) -> None:
    project = edge.add_project("3", rate_limit_per_minute=2)
    body = json.dumps({"events": [event() for _ in range(100)]}).encode()
    statuses = [(await edge.post(body, "/v1/events:batch", edge.headers(project))).status for _ in range(3)]
    assert statuses == [202, 202, 429]
    assert len(edge.stored()) == 200


async def test_rate_limited_request_has_its_exact_shape(edge: LiveEdge) -> None:
    project = edge.add_project("3", rate_limit_per_minute=1)
    await edge.post(encoded(), headers=edge.headers(project))
    answer = await edge.post(encoded(), headers=edge.headers(project))
    wait_ms = answer.json["retryAfterMs"]
    assert answer.body == b'{"error":"rateLimited","retryAfterMs":%d}' % wait_ms
    assert answer.headers["Retry-After"] == str(-(-wait_ms // 1000))


class BrokenIntake(EventPublisher):
    """Fails with an unexpected error."""

    def put(self, project: Project, sdk: str, events: Iterable[Any]) -> list[Any]:
        raise ZeroDivisionError(f"secret of {project.name} {sdk} {events}")


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events:batch"])
@pytest.mark.holds("protocol 7")
async def test_error_of_our_own_is_500_without_a_word_of_its_cause(
    edge: LiveEdge, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    edge.break_intake(BrokenIntake(edge.chunker, edge.sink))
    body = encoded() if path == "/v1/events" else json.dumps({"events": [event()]}).encode()
    answer = await edge.post(body, path)
    assert (answer.status, answer.body) == (500, b'{"error":"internal"}')
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.holds("contract 2.7")
async def test_project_is_lenient_to_the_sdks_that_it_names_and_to_no_others(edge: LiveEdge) -> None:
    crash = encoded(id="00000000-1111-4222-8333-444444444444", release="1.0", kind="anr")
    named = edge.headers(edge.lenient, Svc_Sdk="react-native/0.74.1")
    other = edge.headers(edge.lenient, Svc_Sdk="svc-js/1.0")
    strict = edge.headers(Svc_Sdk="react-native/0.74.1")
    assert (await edge.post(crash, headers=named)).status == 202
    assert (await edge.post(crash, headers=other)).fields == ["id", "kind", "release"]
    assert (await edge.post(crash, headers=strict)).fields == ["id", "kind", "release"]


async def test_health_pages_answer(edge: LiveEdge) -> None:
    for path, expected in (("/healthz", {"alive": True}), ("/readyz", None)):
        answer = await edge.post(b"", path, headers={}, method="GET")
        assert answer.status == 200
        assert expected is None or answer.json == expected
    edge.health.set("accepting", False, "stopping")
    answer = await edge.post(b"", "/readyz", headers={}, method="GET")
    assert answer.status == 503
    assert answer.json == {"ready": False, "parts": {"accepting": {"ok": False, "detail": "stopping"}}}


async def test_metrics_count_refusals_with_their_reasons(edge: LiveEdge) -> None:
    await edge.post(encoded())
    await edge.post(encoded(kind="x"))
    await edge.post(encoded(), headers=edge.headers(Authorization=""))
    await edge.post(b"x" * 1_048_577)
    page = (await edge.metrics_page()).decode()
    for outcome, project, reason in (
        ("accepted", "1", ""),
        ("invalid", "1", "schema"),
        ("tooLarge", "1", "length"),
        ("unauthorized", "", "missing"),
    ):
        line = f'svc_edge_events_total{{outcome="{outcome}",project="{project}",reason="{reason}",sdk="svc-js"}} 1.0'
        assert line in page
