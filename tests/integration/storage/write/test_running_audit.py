"""The running audit finds lost and duplicate events."""

import re
import time

from storage.client import Client, scalar
from storage.maintain.erase.erase_user import erase_user
from storage.shards import alone
from tests.eventually import eventually
from tests.integration.storage.grouped import PROJECTS, Stage, Writer, ended, whole

AGE_MS = 10 * 60_000


def audited(stage: Stage) -> Writer:
    """A writer that audits all the time."""
    return stage.writer(SVC_WRITER_AUDIT_SECONDS="0.2")


def metrics(writer: Writer) -> dict[str, float]:
    """The audit's metrics that aren't zero."""
    lines = re.findall(r"^svc_writer_(audit\S*) (\S+)$", writer.get("metrics")[1], re.MULTILINE)
    return {name: float(value) for name, value in lines if float(value)}


def differences(writer: Writer) -> dict[str, float]:
    return {name: value for name, value in metrics(writer).items() if name.startswith("audit_diff")}


def sample(what: str, kind: str, events: int) -> tuple[str, float]:
    return f'audit_difference_events{{kind="{kind}",what="{what}"}}', events


async def filled(stage: Stage, client: Client) -> None:
    """Events that are accepted and stored, with the outcomes that the grouper counts."""
    received = time.time_ns() // 1_000_000 - AGE_MS
    await stage.produce(4, spread_days=0, now_ms=received)
    counts = {project: len(stage.sent[project]) for project in PROJECTS}
    # One was a dead letter too, and was put back.
    outcomes = [("accepted", counts[7] + 1, 7), ("deadLettered", 1, 7), ("accepted", counts[8], 8)]
    client.insert(
        "outcomes",
        [[project, received // 1000, outcome, "grouper/0", 1, n] for outcome, n, project in outcomes],
        column_names=["project_id", "minute", "outcome", "source", "sequence", "count"],
    )


async def test_a_lost_and_a_doubled_event_are_found(stage: Stage) -> None:
    client = stage.client()
    await filled(stage, client)
    writer = audited(stage)
    with ended(writer):
        await whole(stage)
        user = str(scalar(client, "SELECT any(user_id) FROM events WHERE project_id = 8"))
        erase_user(alone(client), 8, user, "me", lambda: None, lambda *_: None, lambda _: None)
        equal = 'audits_total{result="equal"}'
        least = metrics(writer).get(equal, 0) + 3
        await eventually(lambda: metrics(writer).get(equal, 0) >= least, 90)
        assert differences(writer) == {}
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
