"""The writer's audit finds a lost and a doubled event by itself.

It reports nothing while the pipeline is behind, replays or erases.
"""

import re
import time
from collections import Counter

import pytest

from storage.client import Client, scalar
from storage.maintain.erase.erase_user import erase_user
from storage.shards import alone
from tests.eventually import eventually
from tests.integration.storage.grouped import PROJECTS, Stage, Writer, ended, whole

AGE_MS = 10 * 60_000


def audited(stage: Stage) -> Writer:
    """A writer that audits all the time."""
    none = f"{stage.settings.topic_prefix}none"
    return stage.writer(SVC_WRITER_AUDIT_SECONDS="0.2", SVC_PROCESSORS_APP=none)


def metrics(writer: Writer) -> dict[str, float]:
    """The audit's metrics that aren't zero."""
    lines = re.findall(r"^svc_writer_(audit\S*) (\S+)$", writer.get("metrics")[1], re.MULTILINE)
    return {name: float(value) for name, value in lines if float(value)}


def differences(writer: Writer) -> dict[str, float]:
    return {name: value for name, value in metrics(writer).items() if name.startswith("audit_diff")}


def sample(what: str, kind: str, events: int) -> tuple[str, float]:
    return f'audit_difference_events{{kind="{kind}",what="{what}"}}', events


async def audits(writer: Writer, results: tuple[str, ...], more: int = 3) -> dict[str, float]:
    """The differences after some more audits with one of these results."""

    def done() -> float:
        found = metrics(writer)
        return sum(found.get(f'audits_total{{result="{result}"}}', 0) for result in results)

    before = done()
    await eventually(lambda: done() >= before + more, 90)
    return differences(writer)


def accept(client: Client, accepted: Counter[int], received_ms: int, sequence: int = 1) -> None:
    """The outcomes that the grouper counts."""
    client.insert(
        "outcomes",
        [
            [project, received_ms // 1000, "accepted", "grouper/0", sequence, n]
            for project, n in accepted.items()
        ],
        column_names=["project_id", "minute", "outcome", "source", "sequence", "count"],
    )


async def filled(stage: Stage, client: Client, chunks: int = 4) -> int:
    """Events that are accepted and stored; the time of their receipt."""
    received = time.time_ns() // 1_000_000 - AGE_MS
    await stage.produce(chunks, spread_days=0, now_ms=received)
    accept(client, Counter({project: len(stage.sent[project]) for project in PROJECTS}), received)
    return received


async def test_a_lost_and_a_doubled_event_are_found(stage: Stage) -> None:
    client = stage.client()
    await filled(stage, client)
    writer = audited(stage)
    with ended(writer):
        await whole(stage)
        assert await audits(writer, ("equal",)) == {}
        first = (
            "(project_id, id) IN (SELECT project_id, id FROM events WHERE project_id = 7 ORDER BY id LIMIT 1)"
        )
        client.command(f"INSERT INTO payloads SELECT * FROM payloads WHERE {first}")
        expected = dict([sample("payloads", "surplus", 1), ("audit_differing_hours", 1)])
        await eventually(lambda: differences(writer) == expected, 90)
        client.command(f"ALTER TABLE events DELETE WHERE {first} SETTINGS mutations_sync = 1")
        await eventually(
            lambda: dict([sample("stored", "missing", 1)]).items() <= differences(writer).items(), 90
        )
        await eventually(lambda: "run `svc reconcile`" in writer.log.read_text())
    client.close()


async def test_issues_that_were_removed_are_told(stage: Stage) -> None:
    client = stage.client()
    await filled(stage, client)
    writer = audited(stage)
    with ended(writer):
        await whole(stage)
        lost = scalar(client, "SELECT uniqExact(project_id, fingerprint) FROM events")
        await eventually(lambda: metrics(writer).get("audit_lost_issues") == lost, 90)
        client.command(
            "INSERT INTO issues (project_id, issue_id, fingerprints, version)"
            " SELECT DISTINCT project_id, fingerprint, [fingerprint], 1 FROM events"
        )
        await eventually(lambda: "audit_lost_issues" not in metrics(writer), 90)
        client.command(
            "INSERT INTO issues SELECT * REPLACE (1 AS deleted) FROM (SELECT * FROM issues ORDER BY issue_id LIMIT 1)"
        )
        await eventually(lambda: metrics(writer).get("audit_lost_issues") == 1, 90)
        message = "fingerprints have events and no issue: run `svc reconcile --repair`"
        await eventually(lambda: message in writer.log.read_text())
    client.close()


@pytest.mark.slow
async def test_a_pipeline_that_is_behind_replays_or_erases_is_no_difference(stage: Stage) -> None:
    client = stage.client()
    received = await filled(stage, client)
    writer = audited(stage)
    with ended(writer):
        await whole(stage)
        assert await audits(writer, ("equal",)) == {}
        # Accepted but not stored yet: `grouped` has a record that the group hasn't committed.
        writer.freeze()
        sent = {project: len(stage.sent[project]) for project in PROJECTS}
        await stage.produce(4, spread_days=0, now_ms=received)
        more = Counter({project: len(stage.sent[project]) - sent[project] for project in PROJECTS})
        accept(client, more, received, 2)
        accept(client, more, received, 2)
        writer.thaw()
        await whole(stage)
        assert await audits(writer, ("equal", "behind"), 4) == {}
        # A dead letter that is put back: accepted, dead-lettered, accepted once more.
        client.command(
            "INSERT INTO outcomes (project_id, minute, outcome, source, count)"
            f" SELECT 7, {received // 1000}, o, 'writer/0', 1"
            " FROM (SELECT arrayJoin(['accepted', 'deadLettered']) AS o)"
        )
        assert await audits(writer, ("equal",)) == {}
        user = str(client.command("SELECT any(user_id) FROM events WHERE project_id = 7"))
        erase_user(alone(client), 7, user, "me", lambda: None, lambda _id, _issues: None, lambda _text: None)
        assert await audits(writer, ("equal",)) == {}
        assert 'audits_total{result="different"}' not in metrics(writer)
    client.close()
