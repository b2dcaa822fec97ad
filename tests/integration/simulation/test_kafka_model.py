"""The model of Kafka and of aiokafka's clients answers the same as a real broker."""

import pytest

from tests.integration.simulation.clusters import History, on_broker, on_model
from tests.integration.simulation.group_histories import HISTORIES
from tests.integration.simulation.log_histories import play, random_operations

# Leftovers of aiokafka where a client is stopped while it connects.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@pytest.mark.parametrize("seed", range(10))
def test_a_random_history_of_a_topic(kafka_bootstrap: str, topic_prefix: str, seed: int) -> None:
    operations = random_operations(seed)
    modelled = on_model(seed, play(operations))
    answered = on_broker(kafka_bootstrap, topic_prefix, play(operations))
    for number, (ours, theirs) in enumerate(zip(modelled, answered, strict=True)):
        assert ours == theirs, f"operation {number} of {[kind for kind, _ in operations]}"


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_history(kafka_bootstrap: str, topic_prefix: str, history: History) -> None:
    modelled = on_model(1, history)
    assert modelled == on_broker(kafka_bootstrap, topic_prefix, history)
