"""Findings of doctor about consumer groups and the addresses of processes."""

from functools import partial

import pytest

from broker.group_progress import GroupProgress
from broker.types import TopicPartition
from cli.doctor import process_check
from cli.doctor.process_check import ask, check_processes, expected, group_finding
from local.ports import free_port
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.unit.local.test_readiness import answering

group = partial(GroupProgress, "svc-writer")
PLACES = [TopicPartition("svc.grouped", number) for number in range(10)]
WAITING = dict.fromkeys(PLACES, 700)


@pytest.mark.parametrize(
    ("state", "ok", "message"),
    [
        (group([], {}, [], False), True, "nothing has been in the group svc-writer yet"),
        (group([], {}, [], True), False, "no process is in the group svc-writer"),
        (
            group([], WAITING, PLACES, False),
            False,
            "no process is in the group svc-writer, 7,000 records wait",
        ),
        (group(["10.0.0.1"], WAITING, [], True), True, "1 in the group svc-writer, 7,000 records wait"),
        (
            group(["10.0.0.1"] * 2, WAITING, PLACES[1::3], True),
            False,
            "svc-writer handles none of the 2,100 records that wait in svc.grouped/1, svc.grouped/4, svc.grouped/7",
        ),
    ],
    ids=["never started", "stopped", "stopped, with records", "behind", "a shard's partitions"],
)
def test_a_group_is_wrong_without_members_and_where_nothing_is_handled(
    state: GroupProgress, ok: bool, message: str
) -> None:
    found = group_finding("writer", state)
    assert (found.ok, found.message) == (ok, message)


def test_a_process_that_is_not_ready_is_wrong_with_the_parts_that_fail() -> None:
    body = b'{"ready": false, "parts": {"events": {"ok": false, "detail": "ClickHouse is away"}}}'
    with answering(body, 503) as address:
        found = ask("writer", address, must=False)
        assert found is not None
        assert (found.ok, found.message) == (False, f"{address} is not ready: events: ClickHouse is away")


def test_nothing_at_an_address_is_wrong_only_where_a_process_must_be() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    assert ask("edge", address, must=False) is None
    found = ask("named", address, must=True)
    assert found is not None
    assert not found.ok
    with answering(b"{}") as other:
        assert ask("edge", other, must=False) is None


@pytest.mark.parametrize("all_here", [True, False], ids=["svc up", "elsewhere"])
def test_where_svc_up_runs_every_process_must_answer(all_here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = ("INGEST", "DASHBOARD", "PROCESSORS_HEALTH", "WRITER_HEALTH", "NOTIFY_HEALTH")
    environ = {f"SVC_{name}_PORT": str(free_port()) for name in ports}
    settings = load(MigrateSettings, environ)
    found = expected(environ, settings)

    async def progress(*_: object) -> list[GroupProgress]:
        return [GroupProgress(name, [], {}, [], False) for one in found for name in one.groups]

    monkeypatch.setattr(process_check, "_progress", progress)
    findings = check_processes(settings, found, all_here=all_here)
    wrong = [one.name for one in findings if not one.ok]
    assert wrong == (["edge", "processors", "writer", "dashboard"] if all_here else [])


def test_a_process_of_another_deployment_at_our_port_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def progress(*_: object) -> list[GroupProgress]:
        return [GroupProgress(name, [], {}, [], False) for one in found for name in one.groups]

    monkeypatch.setattr(process_check, "_progress", progress)
    with answering(b'{"ready": false, "parts": {}}', 503) as address:
        environ = {"SVC_NOTIFY_HEALTH_PORT": address.rpartition(":")[2]}
        settings = load(MigrateSettings, environ)
        found = [one for one in expected(environ, settings) if one.name == "notify"]
        assert check_processes(settings, found, all_here=True) == []


def test_processes_at_known_addresses_are_asked_while_kafka_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"SVC_INGEST_PORT": str(free_port()), "SVC_DASHBOARD_PORT": str(free_port())}
    settings = load(MigrateSettings, environ)

    async def progress(*_: object) -> list[GroupProgress]:
        raise TimeoutError

    monkeypatch.setattr(process_check, "_progress", progress)
    everything = partial(check_processes, settings, expected(environ, settings))
    with answering(b'{"ready": true, "parts": {}}') as address:
        *_, named = everything([address])
        assert (named.ok, named.message) == (True, f"{address} is ready")
        problem, *_ = everything([address])
        assert problem.message == "Kafka doesn't say which processes take part: TimeoutError"
        [alone] = everything([address], kafka_answers=False)
        assert alone == named
