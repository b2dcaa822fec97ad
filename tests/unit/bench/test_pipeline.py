"""The load and the guard of `bench.pipeline`: its counts are those of the sent events, and a worse ratio is found."""

import gzip

import msgspec
import pytest

from bench.load import prepare_load
from bench.pipeline import PipelineRatios, compare
from cli.demo.sample_events import load_samples

KEPT = PipelineRatios(drained_of_floor=0.8, least_of_cpu=0.2)


def test_the_file_has_the_counts_of_its_events() -> None:
    file = prepare_load(load_samples()[:40], 500, repeats=0.2)
    ids = []
    for request in file.requests:
        events = msgspec.json.decode(gzip.decompress(request.body))["events"]
        assert len(events) == request.events
        ids += [event["id"] for event in events]
    assert len(ids) >= 500
    assert len(set(ids)) == file.distinct < len(ids)


@pytest.mark.parametrize(
    ("drained", "cpu", "worse"),
    [(0.8, 0.2, []), (0.69, 0.18, []), (0.67, 0.2, ["drained_of_floor"]), (0.9, 0.16, ["least_of_cpu"])],
)
def test_a_loss_of_more_than_the_tolerance_fails(drained: float, cpu: float, worse: list[str]) -> None:
    found = PipelineRatios(drained_of_floor=drained, least_of_cpu=cpu)
    assert [sentence.partition(":")[0] for sentence in compare(found, KEPT)] == worse
