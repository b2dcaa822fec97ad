from prometheus_client import CollectorRegistry

from processors.processors_metrics import ProcessorsMetrics


def test_the_lag_of_a_revoked_partition_is_reported_by_its_new_owner() -> None:
    registry = CollectorRegistry()
    metrics = ProcessorsMetrics(registry)
    for topic in ("events", "issue-deltas"):
        for partition in ("1", "2"):
            metrics.lag.labels(topic, partition).set(7)
    metrics.forget(1, "events", "issue-deltas")
    lags = [
        (s.labels["partition"], s.value) for m in registry.collect() for s in m.samples if "lag" in s.name
    ]
    assert sorted(lags) == [("1", 0), ("1", 0), ("2", 7), ("2", 7)]
