"""A chaos run's plan from its seed, and the parsing of group descriptions."""

import asyncio
import random
import uuid
from itertools import pairwise
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench.chaos import __main__ as chaos
from bench.chaos import commands, kills, proof
from bench.chaos.group_watch import Group, Groups, shares
from bench.chaos.kills import VICTIMS, ProcessKiller
from bench.chaos.scaling import MOST_WORKERS, sizes
from runtime.supervisor import Status
from schemas.environment import load
from schemas.settings import KafkaSettings, MigrateSettings

GROUP = Group("svc-processors", "svc.events")


@given(st.integers(), st.integers(0, 12))
def test_workers_are_added_and_removed_alternately(seed: int, changes: int) -> None:
    plan = sizes(random.Random(seed), changes)
    assert plan[0] == 1
    assert len(plan) == changes + 1
    assert all(1 <= size <= MOST_WORKERS for size in plan)
    assert [after > before for before, after in pairwise(plan)] == [n % 2 == 0 for n in range(changes)]
    assert plan == sizes(random.Random(seed), changes)


def test_a_seed_repeats_who_dies_in_which_order() -> None:
    def plan(seed: int) -> list[str]:
        return ProcessKiller(dict, random.Random(seed), 30, 2, Console()).plan

    assert plan(7) == plan(7) != plan(8)
    assert plan(7).count("kafka") == 2
    assert len(plan(7)) == 32
    assert set(plan(7)) <= {*VICTIMS, "kafka"}


def test_a_seed_repeats_the_commands_and_each_kind_comes_before_any_comes_again() -> None:
    def plan(seed: int) -> list[commands.Planned]:
        return commands.plan(random.Random(seed), 25)

    assert plan(7) == plan(7) != plan(8)
    kinds = [kind for lane in commands.LANES for kind in lane]
    assert sorted(command.kind for command in plan(7)[: len(kinds)]) == sorted(kinds)
    assert any(command.killed_after for command in plan(7))


async def test_a_run_without_a_victim_ends_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "WAIT_SECONDS", 0.2)
    there = {name: Status(name, "restarting", detail="ended with 1") for name in {*VICTIMS, "kafka"}}
    faults = ProcessKiller(lambda: there, random.Random(1), 1, 0, Console(), lambda: {"writer": 3})
    with pytest.raises(TimeoutError, match=r"restarting ended with 1.*'writer': 3"):
        await faults.kill_repeatedly()


async def test_a_run_is_not_judged_while_the_writer_has_a_block_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Polled(Groups):
        async def watch(self) -> None:
            self.behind = {"writer": 3}
            await asyncio.Event().wait()

    seen = Polled(load(KafkaSettings, {}), {})
    monkeypatch.setattr(proof, "Store", lambda _url: object())
    monkeypatch.setattr(proof, "progress", lambda _store: 20)
    monkeypatch.setattr(chaos, "SETTLED_SECONDS", 0)
    judging = asyncio.create_task(chaos.drained(Console(quiet=True), load(MigrateSettings, {}), 10, seen))
    await asyncio.wait([judging], timeout=1.5)
    assert not judging.done()
    seen.behind = {"writer": 0}
    assert await judging is not None


def member(worker: str, *partitions: int, topic: str = "svc.events") -> tuple[str, str, str, bytes, bytes]:
    assignment = [(topic, list(partitions)), ("svc.issue-deltas", [0, 1, 2, 3])]
    share = ConsumerProtocolMemberAssignment(0, assignment, b"").encode()
    return f"svc-processors-{worker}-{uuid.uuid4()}", "client", "/127.0.0.1", b"", share


def description(*members: Any, state: str = "Stable", error: int = 0) -> tuple[Any, ...]:
    return error, GROUP.name, state, "consumer", "faust", list(members)


def test_shares_are_those_of_the_topic_by_the_name_of_the_worker() -> None:
    seen = shares(GROUP, description(member("0", 3, 1), member("eu-west-2", 0, 2)))
    assert seen == {"0": {1, 3}, "eu-west-2": {0, 2}}


@pytest.mark.parametrize(
    "described",
    [
        description(member("0", 0, 1), state="PreparingRebalance"),
        description(member("0", 0, 1), error=15),
        description(member("0", 0, 1), member("2")),
        description(member("0", 0, 1), (*member("2", 3)[:4], b"")),
    ],
    ids=["rebalancing", "coordinator away", "nothing for one", "not yet told its share"],
)
def test_a_group_that_is_not_settled_has_no_shares(described: tuple[Any, ...]) -> None:
    assert shares(GROUP, described) is None
