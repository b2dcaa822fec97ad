"""The data of earlier versions is read, and its processing ends as it did with them."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from bench.chaos import proof
from local.kafka.local_kafka import LocalKafka
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.eventually import eventually
from tests.recorded.record import processed, stack_on, started, stored, svc
from tests.recorded.recording import GROUPS, LOG, issues_of, load_recording, put_back
from tests.servers import CACHE

pytestmark = pytest.mark.slow

RECORDED = sorted(file.parent for file in Path(__file__).parents[1].glob(f"recorded/*/{LOG}"))
EXPIRING = {
    "accepted = stored + erased + duplicate + deadLettered",
    "answered 202 beyond the outcome accepted",
}
"""Outcomes are kept for a time."""


@pytest.mark.parametrize("folder", RECORDED, ids=[folder.name for folder in RECORDED])
async def test_a_version_goes_on_where_another_one_stopped(
    folder: Path, tmp_path: Path, own_kafka: LocalKafka, own_clickhouse: BackedUpClickHouse
) -> None:
    stack = stack_on(own_kafka, own_clickhouse, tmp_path / "stack", CACHE)
    settings = load(MigrateSettings, stack.environ)
    recording = load_recording(folder)
    await put_back(recording, folder, settings, own_clickhouse, stack.data_dir / "edge")
    await svc(stack, "migrate", "--moved")
    supervisor = await started(stack)
    try:
        await eventually(lambda: stored(own_clickhouse) == len(recording.ids), 120)
        await processed(settings, *GROUPS)
        await eventually(lambda: issues_of(own_clickhouse) == recording.issues, 30)
        store = proof.Store(settings)
        ids = {UUID(number) for number in recording.ids}
        claims = await asyncio.to_thread(proof.claims, store, ids, recording.accepted)
        store.close()
        assert [claim for claim in claims if not claim.holds and claim.text not in EXPIRING] == []
    finally:
        await supervisor.stop()
