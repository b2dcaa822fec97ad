"""What doctor says of consumer groups and of the addresses of processes."""

from functools import partial

import pytest

from broker.group_progress import GroupProgress
from broker.types import TopicPartition
from cli.doctor.processes import ask, group_finding
from local.ports import free_port
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
