"""Kafka takes each record that the grouper publishes, whatever clients and rules write.

A record that Kafka refuses would stop all events.
"""

from typing import Any

import msgspec
import pytest

from processors.grouper.batch import BatchOutput
from processors.grouper.fingerprinter import MAX_PARTS_BYTES, published_parts
from schemas.chunks import ChunkEvent
from schemas.issues import Outcome
from schemas.projects import GroupingRule
from schemas.topics import MAX_RECORD_BYTES, Topic
from tests.unit.processors.grouper.grouper_world import PARTITION, GrouperWorld, registry
from tests.unit.processors.made import START, event_id

EMOJI = "\U0001f980"
EVENTS = 100
"""Enough for several records of each kind."""


def of(number: int, message: str = "", **more: Any) -> ChunkEvent:
    body = {
        "timestamp": "2026-09-21T14:13:20.000Z",
        "platform": "javascript",
        "release": f"{number}" + EMOJI * 200,
        "environment": f"{number}" + "\x01" * 200,
        "error": {"type": "\x01" * 200, "message": message, "stack": []},
        **more,
    }
    return ChunkEvent(1, event_id(number), START, "js/1", msgspec.json.encode(body))


VARIABLES = [GroupingRule("long", "", fingerprint=tuple(["{{ tags[t] }}" * 30] * 20))]
HOSTILE = {
    "a long fingerprint": ((), lambda n: of(n, fingerprint=[f"{n} {EMOJI * 990}"] * 30)),
    "control characters": ((), lambda n: of(n, "\x01" * 1000, fingerprint=[f"{n}" + "\x01" * 195] * 32)),
    "a rule's variables": (VARIABLES, lambda n: of(n, tags={"t": f"{n}" + EMOJI * 195})),
}


@pytest.mark.parametrize(("rules", "make"), HOSTILE.values(), ids=HOSTILE)
async def test_a_chunk_of_events_whose_texts_grow_is_published_in_records_that_fit(
    rules: Any, make: Any
) -> None:
    world = GrouperWorld(each=True)
    world.projects = registry(rules)
    world.send([make(n) for n in range(EVENTS)])
    await world.start()
    await world.settle()
    assert sum(world.stored().values()) == sum(world.counted().values()) == EVENTS
    assert len(world.forwarded_as()) == EVENTS
    sizes = {
        name: max(len(message.value or b"") for message in messages)
        for (name, _), messages in world.memory.topics.items()
    }
    assert {name: size for name, size in sizes.items() if size > MAX_RECORD_BYTES * 0.9} == {}


async def test_however_many_outcomes_a_batch_has_they_fit_into_records() -> None:
    world = GrouperWorld()
    await world.start()
    outcomes = [
        Outcome(
            "1", "2026-09-21T14:13:00.000Z", f"{n}" + "s" * 195, "ruleSkipped", EMOJI * 200, 1, "grouper/1", n
        )
        for n in range(14_400)
    ]
    output = BatchOutput(PARTITION)
    output.outcomes[1] = outcomes
    output.rules_skipped = [(1, outcomes)]
    messages = [
        m for topic, _, found in world.worker._first_outputs(output) if topic is Topic.OUTCOMES for m in found
    ]
    assert max(len(message.value or b"") for message in messages) < MAX_RECORD_BYTES // 2
    decoded = [one for message in messages for one in msgspec.json.decode(message.value or b"")]
    assert len(decoded) == 2 * len(outcomes)


def test_parts_that_are_cut_say_so_and_ordinary_ones_are_whole() -> None:
    ordinary = ("type E", "frame f in a.js")
    assert published_parts(ordinary) is ordinary
    many = tuple(f"given {n} {EMOJI * 100}" for n in range(100))
    published = published_parts(many)
    assert published[-1] == "…"
    assert published[:-1] == many[: len(published) - 1]
    assert MAX_PARTS_BYTES - 500 < sum(len(part.encode()) + 5 for part in published) <= MAX_PARTS_BYTES + 10
    long = tuple(f"given {n} {EMOJI * 100}" for n in range(18))
    assert published_parts(long) is long
