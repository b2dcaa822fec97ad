"""Spans of events, and a collector that takes them."""

import sys
import time
import uuid
from collections.abc import Iterator

import pytest

from broker.traces import CollectedTraces, NoTraces, check_traces, open_traces
from local.ports import free_port
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.settings import KafkaSettings
from tests.trace_collector import Collector, collecting

IDS = [uuid.uuid4().bytes for _ in range(2000)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def test_each_stage_adds_a_span_to_the_trace_of_the_event(collector: Collector) -> None:
    url, spans = collector
    began = time.time_ns()
    for process, stage in (("edge", "accept"), ("processors", "group"), ("writer", "store")):
        traces = CollectedTraces(url, 1.0, process)
        traces.record(stage, IDS[:2], began, rows=2)  # type: ignore[arg-type]
        traces.close()
    assert {span.trace_id for span in spans} == {*IDS[:2]}
    of_one = {span.name: span for span in spans if span.trace_id == IDS[0]}
    assert {*of_one} == {"accept", "group", "store"}
    root = of_one["accept"]
    assert not root.parent_span_id
    assert of_one["group"].parent_span_id == of_one["store"].parent_span_id == root.span_id
    assert len({span.span_id for span in of_one.values()}) == 3
    assert began == root.start_time_unix_nano <= root.end_time_unix_nano
    assert [(entry.key, entry.value.int_value) for entry in root.attributes] == [("rows", 2)]


def test_the_stages_choose_the_same_events(collector: Collector) -> None:
    url, _ = collector
    chosen = [CollectedTraces(url, 0.1, process) for process in ("edge", "writer")]
    of_edge, of_writer = (set(traces.chosen(IDS)) for traces in chosen)
    for traces in chosen:
        traces.close()
    assert of_edge == of_writer
    assert 100 < len(of_edge) < 300


def test_a_collector_that_is_down_harms_nobody() -> None:
    traces = CollectedTraces(f"http://127.0.0.1:{free_port()}/v1/traces", 1.0, "edge")
    traces.record("accept", IDS[:2], time.time_ns())
    traces.close()


def test_without_an_address_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = open_traces(load(KafkaSettings, {}), "edge")
    assert isinstance(traces, NoTraces)
    assert traces.chosen(IDS) == []
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    check_traces(load(KafkaSettings, {}))
    with pytest.raises(BadSetting, match="extra `traces`"):
        check_traces(load(KafkaSettings, {"SVC_TRACES_URL": "http://collector:4318/v1/traces"}))
