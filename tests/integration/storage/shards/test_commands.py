"""Commands of operators over three servers: they compare, repair and erase on each, and agree in the end."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from schemas.ids import issue_id
from schemas.times import DAY_MS
from storage.client import Client, scalar
from storage.maintain import rebuild_queries
from storage.shards import Servers, open_servers
from tests.eventually import eventually
from tests.integration.cli.test_erase import USER, erase, printed, processors
from tests.integration.cli.test_reconcile import FINGERPRINTS, reconcile, tell_outcomes_and_issues
from tests.integration.storage.grouped import PROJECTS, counts, ended, exactly, whole
from tests.integration.storage.shards.conftest import new_databases
from tests.integration.storage.shards.spread_stage import SpreadStage
from tests.shard_servers import ShardServer

pytestmark = pytest.mark.slow

OF_USER = f"SELECT count() FROM events WHERE project_id = 8 AND user_id = '{USER}'"


@pytest.fixture
async def stage(
    kafka_bootstrap: str, servers: list[ShardServer], topic_prefix: str, tmp_path: Path
) -> SpreadStage:
    return await SpreadStage(kafka_bootstrap, new_databases(servers), topic_prefix, tmp_path).prepare()


@pytest.fixture
async def filled(stage: SpreadStage) -> AsyncIterator[SpreadStage]:
    """Whole tables on each server, and a writer; enough events that each server has some of the user's."""
    await stage.produce(40)
    with ended(stage.writer()):
        await whole(stage)
        await tell_outcomes_and_issues(stage)
        yield stage


@pytest.fixture
def opened(stage: SpreadStage) -> Iterator[Servers]:
    with open_servers(stage.settings) as found:
        yield found


def of_user(opened: Servers) -> list[int]:
    """The user's events on each server."""
    return [int(scalar(server.own, OF_USER)) for server in opened]


def issues(client: Client) -> Counter[int]:
    """How many issues a server shows of each project."""
    rows = client.query(
        "SELECT project_id, count() FROM issues FINAL WHERE deleted = 0 GROUP BY 1"
    ).result_rows
    return Counter({int(project): int(n) for project, n in rows})


async def test_damage_on_each_server_is_reported_and_repaired(
    stage: SpreadStage, opened: Servers, tmp_path: Path
) -> None:
    await stage.produce(40)
    first, second, third = (server.own for server in opened)
    with ended(stage.writer()):
        await whole(stage)
        await tell_outcomes_and_issues(stage)
        every = Counter(dict.fromkeys(PROJECTS, len(FINGERPRINTS)))
        await eventually(lambda: all(issues(server.own) == every for server in opened), 60)
        equal = await reconcile(stage, tmp_path)
        assert equal.exit_code == 0, equal.output
        stored = {one["projectId"]: one["stored"] for one in json.loads(equal.stdout)["projects"]}
        assert stored == {str(project): len(ids) for project, ids in stage.sent.items()}

        first.command("ALTER TABLE events DELETE WHERE id % 5 = 0 SETTINGS mutations_sync = 1")
        first.command("ALTER TABLE issues DELETE WHERE project_id = 7 SETTINGS mutations_sync = 1")
        second.command("INSERT INTO events SELECT * FROM events LIMIT 7")
        second.command("TRUNCATE TABLE outcomes")
        third.command("TRUNCATE TABLE issue_hour")
        third.command("ALTER TABLE issues DELETE WHERE project_id = 8 SETTINGS mutations_sync = 1")
        damaged = await reconcile(stage, tmp_path)
        assert damaged.exit_code == 1
        assert {one["what"] for one in json.loads(damaged.stdout)["differences"]} >= {
            *("events stored twice", "issue_hour", "outcomes on shard 2/3"),
            *("issues on shard 1/3", "issues on shard 3/3", "events without issue"),
        }
        repaired = await reconcile(stage, tmp_path, "--repair")
        assert repaired.exit_code == 0, repaired.output
        assert counts(opened[0].whole) == exactly(stage.total)
        assert [int(scalar(server.own, "SELECT count() FROM events")) for server in opened] == stage.on_shard
        assert [issues(server.own) for server in opened] == [every] * len(opened)


async def test_a_comparison_names_the_server_that_is_frozen(
    stage: SpreadStage, servers: list[ShardServer], tmp_path: Path
) -> None:
    with servers[1].frozen():
        refused = await reconcile(stage, tmp_path)
    assert refused.exit_code == 1
    address = urlsplit(servers[1].url()).netloc.rpartition("@")[2]
    assert refused.stderr.startswith(
        f"svc: ClickHouse: {address} takes connections and doesn't answer within"
    )


async def test_a_user_is_erased_from_every_server_and_no_repair_brings_the_events_back(
    filled: SpreadStage, opened: Servers, tmp_path: Path
) -> None:
    before = of_user(opened)
    assert min(before) > 0
    seen = printed(await erase(filled, "--project", "8", "--user", USER, "--dry-run", "--json"))
    assert (seen["events"], of_user(opened)) == (sum(before), before)
    done = printed(await erase(filled, "--project", "8", "--user", USER, "--yes", "--json"))
    assert done["events"] == sum(before)
    assert len(done["erasure"].split()) == len(opened)
    assert of_user(opened) == [0] * len(opened)
    async with processors(filled) as commands:
        await eventually(lambda: {one.kind for one in commands} == {"redact"}, 60)
    equal = await reconcile(filled, tmp_path)
    assert equal.exit_code == 0, equal.output
    erased = {one["projectId"]: one["erased"] for one in json.loads(equal.stdout)["projects"]}
    assert erased == {"7": 0, "8": sum(before)}
    for server in opened:
        server.own.command("ALTER TABLE events DELETE WHERE id % 5 = 0 SETTINGS mutations_sync = 1")
    repaired = await reconcile(filled, tmp_path, "--repair")
    assert repaired.exit_code == 0, repaired.output
    assert of_user(opened) == [0] * len(opened)
    again = printed(await erase(filled, "--project", "8", "--user", USER, "--yes", "--json"))
    assert (again["events"], again["erasure"]) == (0, done["erasure"])
    assert again["before"]


async def test_a_project_goes_from_every_server(filled: SpreadStage, opened: Servers, tmp_path: Path) -> None:
    async with processors(filled):
        done = printed(await erase(filled, "--project", "8", "--yes", "--json"))
    assert len(done["erasure"].split()) == len(opened)
    for server in opened:
        for table in ("events", "payloads", "issues", "outcomes", "tag_day"):
            assert scalar(server.own, f"SELECT count() FROM {table} WHERE project_id = 8") == 0
            assert scalar(server.own, f"SELECT count() FROM {table} WHERE project_id = 7") > 0
    equal = await reconcile(filled, tmp_path)
    assert equal.exit_code == 0, equal.output
    again = printed(await erase(filled, "--project", "8", "--yes", "--json"))
    assert again["before"]


async def test_a_rebuild_reads_the_rows_of_all_servers(filled: SpreadStage, opened: Servers) -> None:
    every = Counter(dict.fromkeys(PROJECTS, len(FINGERPRINTS)))
    await eventually(lambda: issues(opened[0].own) == every, 60)
    printed(await erase(filled, "--project", "8", "--user", USER, "--yes", "--json"))
    client = opened[0].whole
    counted = {(one.project, one.fingerprint): one for one in rebuild_queries.counted(client)}
    sizes = Counter[int]()
    for (project, _), one in counted.items():
        sizes[project] += one.events
    assert sizes == {project: len(ids) for project, ids in filled.sent.items()}
    whole_of = counted[7, FINGERPRINTS[0]]
    parts = [
        one
        for server in opened
        for one in rebuild_queries.counted(server.own)
        if (one.project, one.fingerprint) == (7, FINGERPRINTS[0])
    ]
    assert len(parts) == len(opened)
    assert whole_of.events == sum(part.events for part in parts)
    assert set(whole_of.users) == {user for part in parts for user in part.users}
    assert (whole_of.last_ms, whole_of.last_event) == max((part.last_ms, part.last_event) for part in parts)
    assert {(issue.project, issue.issue) for issue in rebuild_queries.shown(client)} == {
        (project, issue_id(project, fingerprint)) for project in PROJECTS for fingerprint in FINGERPRINTS
    }
    days = rebuild_queries.received_days(client, 5)
    ids = {(project, number) for project, number, _ in rebuild_queries.ids(client, days[-1] * DAY_MS)}
    assert ids == {(project, number) for project, numbers in filled.sent.items() for number in numbers}
    events, users = rebuild_queries.since(client, 7, [*FINGERPRINTS], 0)
    assert events == len(filled.sent[7])
    assert len(users) == len({user for one in counted.values() if one.project == 7 for user in one.users})
