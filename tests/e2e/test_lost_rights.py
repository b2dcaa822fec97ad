"""A right is withdrawn from a running process and given back while events flow; the servers are real."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from storage.rights import Right
from tests.eventually import eventually
from tests.rights_rig import Rig, running
from tests.secured_kafka import READ, TOPIC, WRITE, Acl

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with running(tmp_path_factory.mktemp("rights")) as rig:
        yield rig


@pytest.mark.parametrize(
    ("process", "right", "status", "named"),
    [
        ("edge", Acl("edge", TOPIC, "svc.events", WRITE), 200, ("can't write events", "svc.events")),
        ("processors", Acl("processors", TOPIC, "svc.events", READ), 503, ("Read on topic svc.events",)),
        ("writer", Acl("writer", TOPIC, "svc.grouped", READ), 503, ("Read on topic svc.grouped",)),
        ("writer", Right("INSERT", "svc.*"), 503, ("grant INSERT", "ON svc.")),
        ("dashboard", Right("SELECT", "svc.*"), 503, ("grant SELECT", "ON svc.")),
    ],
    ids=["edge", "processors", "writer without Kafka", "writer without ClickHouse", "dashboard"],
)
async def test_process_without_a_right_names_it_and_goes_on_with_every_event_once_it_is_back(
    rig: Rig, process: str, right: Acl | Right, status: int, named: tuple[str, ...]
) -> None:
    async def works() -> bool:
        ready = await rig.ready(process) == 200 and await rig.read() == 200
        return ready and rig.accepted <= (await rig.stored()).keys()

    await rig.send()
    await eventually(works, 120)
    before = len(rig.log(process))
    await rig.withdraw(process, right)

    async def lost() -> bool:
        await rig.send()
        messages = [line["message"] for line in rig.log(process)[before:]]
        is_named = any(all(part in message for part in named) for message in messages)
        return is_named and await rig.ready(process) == status

    await eventually(lost, 120)
    if process == "dashboard":
        assert await rig.read() == 503
    await rig.give_back(process, right)
    await eventually(works, 120)
    assert set((await rig.stored()).values()) == {1}
    assert [line for line in rig.log(process)[before:] if "exception" in line] == []
