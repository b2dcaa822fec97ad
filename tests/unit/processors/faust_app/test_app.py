"""The app's settings of Faust lose no records, and its times follow from the session's setting."""

from pathlib import Path
from typing import Any

import pytest
from faust.types.enums import ProcessingGuarantee
from mode import CrashingSupervisor
from prometheus_client import CollectorRegistry

from broker.client import client_options
from processors.faust_app.patches import OrderedTableManager
from processors.faust_app.processors_app import Processors
from processors.processors_metrics import ProcessorsMetrics
from schemas.environment import load
from schemas.projects import ProjectRegistry
from schemas.settings import KafkaSettings, ProcessorsSettings


def built(**environ: str) -> Processors:
    settings = load(ProcessorsSettings, environ)
    return Processors(settings, 4, ProjectRegistry(), ProcessorsMetrics(CollectorRegistry()))


async def test_the_app_uses_nothing_of_faust_that_loses_or_repeats_records() -> None:
    conf: Any = built().app.conf
    assert str(conf.store) == "memory:"
    assert conf.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE
    assert not conf.producer_threaded
    assert conf.agent_supervisor is CrashingSupervisor
    assert conf.TableManager is OrderedTableManager
    assert not conf.stream_wait_empty
    assert (conf.topic_allow_declare, conf.topic_disable_leader, conf.web_enabled) == (False, True, False)
    assert conf.consumer_auto_offset_reset == "earliest"


def test_the_worker_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app: Any = built(SVC_DATA_DIR=str(tmp_path / "no" / "such")).app
    app._create_directories()
    assert not list(tmp_path.iterdir())


async def test_a_topic_that_can_be_read_again_is_noticed_as_soon_as_by_other_clients() -> None:
    conf: Any = built().app.conf
    ages = {conf.consumer_metadata_max_age_ms, conf.producer_metadata_max_age_ms}
    assert ages == {client_options(KafkaSettings())["metadata_max_age_ms"]}


@pytest.mark.parametrize("session", ["1", "3", "10", "30"])
async def test_heartbeats_and_the_lease_are_shares_of_the_session(session: str) -> None:
    processors = built(SVC_KAFKA_SESSION_SECONDS=session)
    conf, seconds = processors.app.conf, float(session)
    assert conf.broker_session_timeout == seconds
    assert conf.broker_heartbeat_interval * 5 == pytest.approx(seconds)
    # Some heartbeats may get lost before a worker stops writing. It stops before the group gives its
    # partitions away.
    assert conf.broker_heartbeat_interval * 2 < processors.lease.seconds < seconds
