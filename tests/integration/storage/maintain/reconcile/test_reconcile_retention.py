"""Rows dropped by a shorter retention are not missing after it was raised; lost rows still are."""

from datetime import UTC, date, datetime, time, timedelta

import pytest

from schemas.ids import issue_id
from storage.client import Client, scalar
from storage.maintain.reconcile.reconcile import FigureDifference, compare
from storage.shards import alone
from storage.write.housekeeping import drop_expired
from tests.long_forms import first_quick

PROJECT = 7
TODAY = datetime.now(UTC).date()
RAISED = TODAY - timedelta(days=40)
SHORT, LONG = 7, 90
A_DAY = 10


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


def keep(client: Client, day: date, events: int, payloads: int) -> None:
    """Write the project down as the writer does that day."""
    version = int(noon(day).timestamp() * 1000)
    client.insert(
        "projects",
        [[PROJECT, "shop", noon(TODAY - timedelta(days=80)), events, payloads, version]],
        column_names=["project_id", "name", "created", "retention_days", "payload_days", "version"],
    )


def open_issue(client: Client, fingerprint: int, first: date, events: int) -> None:
    """Write an issue down that says how many events it has from a day until now."""
    names = ["project_id", "issue_id", "fingerprints", "first_seen", "last_seen", "events", "version"]
    row = [PROJECT, issue_id(PROJECT, fingerprint), [fingerprint], noon(first), noon(TODAY), events, 1]
    client.insert("issues", [row], column_names=names)


@pytest.fixture(params=first_quick(["events", "payloads"]))
def raised(client: Client, request: pytest.FixtureRequest) -> Client:
    """A project with events on each of 80 days, that keeps them or their payloads for longer since 40 days ago."""
    events = SHORT if request.param == "events" else LONG
    keep(client, TODAY - timedelta(days=80), events, SHORT)
    keep(client, RAISED, LONG, LONG)
    client.command(
        "INSERT INTO ingest (project_id, fingerprint, ts, received, id, retention_days, payload_days, payload)"
        " SELECT {project:UInt32}, 1,"
        " {noon:DateTime64(3, 'UTC')} - toIntervalDay(intDiv(number, {many:UInt32})) AS at, at, number,"
        " if(toDate(at) < {raised:Date}, {events:UInt16}, 90), if(toDate(at) < {raised:Date}, 7, 90), 'x'"
        " FROM numbers(80 * {many:UInt32})",
        parameters={
            "project": PROJECT,
            "noon": noon(TODAY),
            "raised": RAISED,
            "events": events,
            "many": A_DAY,
        },
    )
    client.insert(
        "outcomes",
        [
            [PROJECT, noon(TODAY - timedelta(days=age)), "js/1", "accepted", "", "grouper/0", age, A_DAY]
            for age in range(80)
        ],
        column_names=["project_id", "minute", "sdk", "outcome", "reason", "source", "sequence", "count"],
    )
    open_issue(client, 1, TODAY - timedelta(days=79), 80 * A_DAY)
    assert drop_expired(client, TODAY)
    return client


def differences(client: Client) -> list[FigureDifference]:
    return compare(alone(client), TODAY).differences


def test_rows_dropped_before_a_retention_was_raised_are_not_missing(raised: Client) -> None:
    assert scalar(raised, "SELECT count() FROM payloads") < 80 * A_DAY
    assert differences(raised) == []


def test_missing_rows_received_since_are_reported(raised: Client) -> None:
    lost = TODAY - timedelta(days=20)
    for table in ("events", "payloads"):
        raised.command(
            f"ALTER TABLE {table} DELETE WHERE toDate(ts) = '{lost}' AND id % 2 = 0 SETTINGS mutations_sync = 2"
        )
    reported = {(one.what, one.day, one.expected, one.found) for one in differences(raised)}
    assert ("stored", str(lost), A_DAY, A_DAY // 2) in reported
    assert {day for what, day, *_ in reported if what == "stored"} == {str(lost)}
    assert {what for what, *_ in reported} >= {"stored", "issue_day", "project_hour"}


def test_a_young_issue_is_compared_although_another_is_older_than_its_events(raised: Client) -> None:
    raised.command(
        "INSERT INTO ingest (project_id, fingerprint, ts, received, id, retention_days, payload_days, payload)"
        " SELECT {project:UInt32}, 2, {noon:DateTime64(3, 'UTC')} AS at, at, 100000 + number, 90, 90, 'x'"
        " FROM numbers({many:UInt32})",
        parameters={"project": PROJECT, "noon": noon(TODAY), "many": A_DAY},
    )
    open_issue(raised, 2, TODAY, A_DAY // 2)
    reported = [one for one in differences(raised) if one.what == "issues"]
    assert [(one.expected, one.found, one.keys) for one in reported] == [(A_DAY, A_DAY // 2, 1)]


def test_a_project_is_seen_with_each_retention_that_it_had(client: Client) -> None:
    for day, days in ((80, 7), (40, 90), (40, 90), (3, 30)):
        keep(client, TODAY - timedelta(days=day), days, days)
    seen = client.query(
        "SELECT day, retention_days, payload_days FROM retentions FINAL ORDER BY day"
    ).result_rows
    assert seen == [(TODAY - timedelta(days=day), days, days) for day, days in ((80, 7), (40, 90), (3, 30))]
