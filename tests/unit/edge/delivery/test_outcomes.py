"""Metrics with bounded labels, and outcome records."""

from pathlib import Path

import pytest

from edge.delivery.outcome_reports import OutcomeReporter
from edge.edge_metrics import EdgeMetrics
from schemas.issues import Outcome, decode_outcomes
from schemas.topics import Topic
from tests.unit.edge.delivery.memory_sink import MemorySink


def sent(sink: MemorySink) -> list[Outcome]:
    assert all(record.topic is Topic.OUTCOMES for record in sink.records)
    return [one for record in sink.records for one in decode_outcomes(record.value)]


def test_sdks_of_an_attacker_do_not_grow_the_metrics() -> None:
    metrics = EdgeMetrics()
    for number in range(5000):
        metrics.count("1", f"sdk{number}/1", "accepted", "")
    assert metrics.page().count(b"svc_edge_events_total{") <= 101


def test_strangers_do_not_use_up_the_names() -> None:
    metrics = EdgeMetrics()
    for number in range(500):
        metrics.count("", f"stranger{number}/1", "unauthorized", "unknown")
    metrics.count("1", "svc-js/1.0", "accepted", "")
    page = metrics.page().decode()
    assert 'svc_edge_events_total{outcome="accepted",project="1",reason="",sdk="svc-js"} 1.0' in page
    assert (
        'svc_edge_events_total{outcome="unauthorized",project="",reason="unknown",sdk="other"} 500.0' in page
    )


def test_latency_is_counted_by_endpoint() -> None:
    metrics = EdgeMetrics()
    metrics.answered("/v1/events", 202, 0.003)
    page = metrics.page().decode()
    assert 'svc_edge_request_seconds_bucket{endpoint="/v1/events",le="0.005"} 1.0' in page
    assert 'svc_edge_requests_total{endpoint="/v1/events",status="202"} 1.0' in page


async def test_outcomes_are_gathered_by_minute_sdk_outcome_and_reason(tmp_path: Path) -> None:
    sink, now = MemorySink(), 90.0
    outcomes = OutcomeReporter(sink, tmp_path / "saved", lambda: now)
    for _ in range(3):
        outcomes.count("1", "a/1", "invalid", "schema")
    outcomes.count("1", "a/1", "tooLarge", "body")
    outcomes.count("2", "a/1", "rateLimited", "requests a minute")
    now = 120.0
    outcomes.count("1", "a/1", "invalid", "schema")
    await outcomes.flush()
    found = sent(sink)
    assert [(o.project_id, o.minute[11:16], o.outcome, o.count) for o in found] == [
        ("1", "00:01", "invalid", 3),
        ("1", "00:01", "tooLarge", 1),
        ("2", "00:01", "rateLimited", 1),
        ("1", "00:02", "invalid", 1),
    ]
    assert len({(o.source, o.sequence) for o in found}) == 4
    assert [record.key for record in sink.records] == [b"1", b"1", b"2", b"1"]
    await outcomes.flush()
    assert len(sink.records) == 4


async def test_the_first_of_a_minute_needs_an_example(tmp_path: Path) -> None:
    sink, now = MemorySink(), 90.0
    outcomes = OutcomeReporter(sink, tmp_path / "saved", lambda: now)

    def count(reason: str) -> None:
        example = "kind: required" if outcomes.needs_example("1", "a/1", "invalid", reason) else ""
        outcomes.count("1", "a/1", "invalid", reason, example=example)

    count("schema")
    count("schema")
    count("body")
    await outcomes.flush()
    count("schema")
    await outcomes.flush()
    now = 120.0
    count("schema")
    await outcomes.flush()
    assert [(o.reason, o.count, o.example) for o in sent(sink)] == [
        ("schema", 2, "kind: required"),
        ("body", 1, "kind: required"),
        ("schema", 1, ""),
        ("schema", 1, "kind: required"),
    ]


async def test_outcomes_wait_for_kafka_with_the_same_number(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.up = False
    outcomes = OutcomeReporter(sink, tmp_path / "saved")
    outcomes.count("1", "a/1", "invalid", "schema")
    await outcomes.flush()
    sink.up = True
    outcomes.count("1", "a/1", "invalid", "schema")
    await outcomes.flush()
    assert [o.sequence for o in sent(sink)] == [1, 2]


async def test_outcomes_that_could_not_be_sent_are_sent_by_the_next_process(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.up = False
    first = OutcomeReporter(sink, tmp_path / "saved")
    first.count("1", "a/1", "invalid", "schema")
    await first.stop()
    sink.up = True
    second = OutcomeReporter(sink, tmp_path / "saved")
    second.load()
    await second.flush()
    assert len(sent(sink)) == 1
    assert not (tmp_path / "saved").exists()


async def test_record_that_cannot_be_written_costs_itself_alone(tmp_path: Path) -> None:
    sink = MemorySink()
    outcomes = OutcomeReporter(sink, tmp_path / "saved")
    for sdk in ("a/1", "\udcff/1", "b/1"):
        outcomes.count("1", sdk, "invalid", "schema")
    await outcomes.flush()
    assert [outcome.sdk for outcome in sent(sink)] == ["a/1", "b/1"]
    sink.up = False
    for sdk in ("a/1", "\udcff/1", "b/1"):
        outcomes.count("1", sdk, "invalid", "schema")
    await outcomes.stop()
    sink.up = True
    second = OutcomeReporter(sink, tmp_path / "saved")
    second.load()
    await second.flush()
    assert [outcome.sdk for outcome in sent(sink)] == ["a/1", "b/1"] * 2


@pytest.mark.parametrize("content", [b"\xff", b"[", b"[" * 5000, b'[{"sdk":"\xff"}]', b"{}"])
async def test_damaged_file_of_counts_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "saved").write_bytes(content)
    OutcomeReporter(MemorySink(), tmp_path / "saved").load()
    assert not (tmp_path / "saved").exists()
