"""Faults at a place of the product instead of a time: an armed fault strikes the next process that comes there.

Also the coverage of schedules: counters of events without which a run of many schedules proves little.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from processors.grouper.dedup_log import decode_entry, is_entry
from schemas.change_records import is_change
from schemas.increments import is_bundle
from schemas.issues import REBUILD, decode_activity, decode_delta
from schemas.topics import Topic, topic_name
from storage.write.block_inserter import ADMITTED_SECONDS
from tests.simulation import faults
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_STAGE: Final = "processors.grouper.grouper_stage.GrouperStage."
_INSERTER: Final = "storage.write.block_inserter.BlockInserter."
_FILLING: Final = "storage.exactly_once.filling.Filling."
POINTS: Final = {
    "at spooling": "edge.delivery.spool.Spool.append",
    "at drain": "edge.delivery.drain.send_all",
    "at removal": "edge.delivery.spool.Spool.remove",
    "at decision": _STAGE + "_record",
    "at increments": _STAGE + "_increments",
    "at compaction": _STAGE + "_compact",
    "at restoring": _STAGE + "restore",
    "at fold": "processors.aggregator.aggregator_stage.AggregatorStage._record",
    "at insert": "storage.write.block_inserter.BlockInserter.deliver",
    "at second insert": "storage.write.block_inserter.BlockInserter.replay",
    "at commit": "storage.write.rejected_records.DeadLetterWriter.send",
    "at completion": "storage.write.block_inserter.complete",
    "kill at decision": _STAGE + "_record",
    "sleep at decision": _STAGE + "_record",
    "sleep at activities": "processors.changelog.Changelog.check_owner",
    "loss at increments": _STAGE + "_increments",
    "kill in a slow insert": _INSERTER + "deliver",
    "kill in a slow completion": _FILLING + "_insert_some",
    "frozen before an insert": _INSERTER + "_insert",
    "lost answer": _INSERTER + "_insert",
    "torn insert": _INSERTER + "_insert",
    "death in a completion": _FILLING + "_insert_some",
    "late commit": "storage.write.source.GroupedSource.commit",
}
"""The functions at whose call a fault strikes."""
_FREEZES: Final = {"at insert", "at second insert", "at decision"}
SIGNALS: Final = ("join", "joined", "refused", "move", "news", "leave", "left")
WANTED: Final = (
    *POINTS,
    *(f"signal {kind}" for kind in SIGNALS),
    *("regressed", "reopened by a limit", "merged", "unmerged", "commented", "assigned"),
    *(
        "old id found stored",
        "garbage",
        "seen is merged",
        "seen has expired",
        "seen is lost",
        "issues are lost",
    ),
    *(
        "a refused row",
        "erased events",
        "rebuilt tables",
        "undone",
        "deltas are read again",
        "several servers",
    ),
)
"""The required coverage of a run of all fixed seeds."""


def strike(schedule: "Schedule", point: str) -> None:
    """Let the fault that is armed for a place happen there."""
    random, fiber = schedule.world.random, schedule.world.fiber
    if point not in schedule.armed or fiber is None:
        return
    schedule.armed.discard(point)
    schedule.reached[point] += 1
    schedule.world.note(f"{fiber.process.name} is {point}")
    process, server = fiber.process, schedule.a_server(random)
    match point:
        case "at completion":
            seconds = random.choice((0.5, 3.0))
            # It waits before it compares.
            after = random.uniform(0.0, 0.05) + ADMITTED_SECONDS
            schedule.world.after(after, lambda: server.crash(seconds))
        case "kill at decision":
            process.fatal_in = random.randint(1, 3)
        case "sleep at decision" | "sleep at activities":
            faults.sleep(process, random, steps=14)
        case "loss at increments":
            schedule.world.after(random.uniform(0.0, 0.01), lambda: faults.lose(schedule, Topic.SEEN))
        case "kill in a slow insert" | "kill in a slow completion":
            server.drag = random.uniform(1.5, 4.0)
            schedule.world.after(random.uniform(0.02, 0.6), partial(_replace, schedule, process))
        case "torn insert" | "death in a completion":
            server.die_in_insert(random.choice((0.5, 3.0)))
        case "late commit":
            schedule.network.held = random.uniform(1.5, 3.0)
        case "frozen before an insert" | "lost answer":
            server.mishap = point
        case _ if point in _FREEZES and random.random() < 0.5:
            process.freeze_in = random.randint(1, 14), random.choice((20.0, 40.0))
        case _:
            process.fatal_in = random.randint(1, 12)


def _replace(schedule: "Schedule", process: Process) -> None:
    """A process ends, and its successor finds that no row is refused any more."""
    process.kill()
    schedule.refuse_nothing()


@contextmanager
def aimed(schedule: "Schedule") -> Iterator[None]:
    """Watch the places that a plan aims at."""
    with ExitStack() as stack:
        for point in sorted({entry.what for entry in schedule.entries} & POINTS.keys()):
            stack.enter_context(patch(POINTS[point], _watched(schedule, point)))
        yield


def _watched(schedule: "Schedule", point: str) -> Callable[..., Any]:
    original = _found(POINTS[point])

    @wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        strike(schedule, point)
        return original(*arguments, **options)

    return watched


def _found(name: str) -> Any:
    owner, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(owner), attribute)
    except ModuleNotFoundError:
        return getattr(_found(owner), attribute)


def reached(schedule: "Schedule") -> Counter[str]:
    """The coverage of a schedule."""
    found = schedule.reached.copy()
    logs = schedule.broker.topics
    for log in logs[topic_name(Topic.ISSUE_DELTAS, "svc.", {})]:
        for record in log.records:
            if not is_bundle(record.value or b"") and (signal := decode_delta(record.value or b"").signal):
                found[f"signal {signal.kind}"] += 1
    for log in logs[topic_name(Topic.ISSUE_ACTIVITY, "svc.", {})]:
        for record in log.records:
            if is_change(record.value or b""):
                continue
            activity = decode_activity(record.value or b"")
            is_limit = activity.kind == "reopened" and activity.by == "system"
            found["reopened by a limit" if is_limit else activity.kind] += 1
            found["undone"] += activity.by == REBUILD
    for log in logs[topic_name(Topic.SEEN, "svc.", {})]:
        entries = [decode_entry(r.value) for r in log.records if r.value and is_entry(r.key or b"")]
        found["seen is merged"] += any(entry.merged for entry in entries)
        found["seen has expired"] += any((record.key or b"").startswith(b"h") for record in log.records)
    found["garbage"] += len(schedule.clients.garbage)
    found["a refused row"] += len(schedule.refused)
    found["erased events"] += len(schedule.whole().erasing.never_again)
    found["several servers"] += len(schedule.servers) > 1
    found["rebuilt tables"] += schedule.is_rebuilt
    return +found
