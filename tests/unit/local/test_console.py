"""What the subcommands share at the terminal."""

import click
import pytest
from aiokafka.errors import KafkaConnectionError

from local.console import kafka_told
from schemas.settings import KafkaSettings


def test_a_closed_pipe_is_no_trouble_of_kafka() -> None:
    with pytest.raises(BrokenPipeError), kafka_told(KafkaSettings(kafka_bootstrap="127.0.0.1:1")):
        raise BrokenPipeError


def test_trouble_of_kafka_says_what_keeps_us_out() -> None:
    with (
        pytest.raises(click.ClickException, match=r"nothing listens on 127\.0\.0\.1:1"),
        kafka_told(KafkaSettings(kafka_bootstrap="127.0.0.1:1")),
    ):
        raise KafkaConnectionError("Unable to bootstrap")
