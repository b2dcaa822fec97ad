"""The budget of a project's rules bounds their cost within a record, whatever batch decides it."""

import asyncio
from collections.abc import Sequence
from time import process_time
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from grouping.rule_checks import violations
from grouping.rules import compile_rules
from grouping.steps import EVENT_STEPS, MAX_STEPS, size_of
from processors.grouper import fingerprinter, grouper_stage
from processors.grouper.batch import BatchOutput
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.rule_budget import RuleBudget
from query.event_view import from_json
from schemas.chunks import ChunkEvent, decode_grouped
from schemas.projects import GroupingRule, Project, ProjectRegistry, encode_project
from tests.unit.grouping.fingerprint.events import event, frame
from tests.unit.processors.grouper.grouper_world import GrouperWorld
from tests.unit.processors.grouper.rule_sets import MARKS, MATCHES, sample_events
from tests.unit.processors.grouper.test_batch import fresh, run
from tests.unit.processors.made import START, event_id, source

DEAR = [
    GroupingRule(
        f"dear {n}",
        " OR ".join(f"file:{'*a' * 14}*{n}x{term}00*" for term in range(5)),
        fingerprint=("x",),
    )
    for n in range(100)
]
"""Among the dearest rules that can be saved."""
MANY = [
    GroupingRule(f"{n}", f"type:[a{n},b{n},c{n}] file:*report{n}*", not_in_app=(f"*/vendor{n}/*",))
    for n in range(100)
]
ORDINARY = [GroupingRule("ordinary", "function:handle*", fingerprint=("{{ default }}", "mine"))]


def registry(**rules: Sequence[GroupingRule]) -> ProjectRegistry:
    """Projects `p1`, `p2` with these rules."""
    projects = ProjectRegistry()
    for name, found in rules.items():
        project = Project(name[1:], name, "2026-01-01T00:00:00.000Z", grouping_rules=tuple(found))
        projects.apply(name[1:].encode(), encode_project(project))
    return projects


def deep(number: int, **more: Any) -> bytes:
    """An event with 25 frames; those of each number differ."""
    stack = [frame(f"handle{n}", f"src/{'a' * 40}/{number}/{n}.js") for n in range(25)]
    sent = event(stack=stack, timestamp="2026-09-21T14:13:20.000Z", release="a@1+1", environment="e", **more)
    return msgspec.json.encode(sent)


def of(project: int, number: int, body: bytes) -> ChunkEvent:
    return ChunkEvent(project, event_id(number + 1000 * project), START, "js/1", body)


def skipped(output: BatchOutput) -> dict[int, int]:
    """Skips by project."""
    return {project: sum(o.count for o in found) for project, found in output.rules_skipped}


def test_the_dearest_rules_can_be_saved() -> None:
    assert violations(DEAR) == []


def test_the_rules_of_one_project_cost_no_more_than_their_budget_and_those_of_another_are_asked() -> None:
    events = [of(project, n, deep(n)) for n in range(20) for project in (1, 2)]
    output = run(fresh(), [source(0, events)], Fingerprinter(registry(p1=DEAR, p2=ORDINARY)))
    size = size_of(from_json(deep(0), "js/1", START))
    each = compile_rules(DEAR).searches_of_error.steps(size) / len(DEAR)
    evaluated = 20 * len(DEAR) - skipped(output)[1]
    assert 0 < evaluated * each <= MAX_STEPS + 20 * EVENT_STEPS
    assert 2 not in skipped(output)
    assert output.grouped_events is not None
    of_second = [one.grouping.rule for one in output.grouped_events if one.event.project == 2]
    assert of_second == ["rule:ordinary"] * 20


def test_ordinary_rules_are_asked_on_every_event_of_a_record() -> None:
    budget, grouper = RuleBudget(), Fingerprinter(registry(p1=[*MATCHES, *MARKS]))
    for one in sample_events()[:300]:
        grouper.group(one, budget)
    assert not budget.skipped


def test_repeats_within_a_record_cost_once() -> None:
    budget, grouper = RuleBudget(), Fingerprinter(registry(p1=MANY))
    body = deep(0)
    with patch("processors.grouper.rule_budget.EVENT_STEPS", 0):
        for number in range(300):
            grouper.group(of(1, number, body), budget)
    assert not budget.skipped


mixes = st.lists(
    st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)
RULES = registry(
    p1=[GroupingRule("tagged", "n:yes file:*a*7*", not_in_app=("*handle1*",) * 40), *DEAR[:10], *MARKS],
    p2=[*DEAR[:5], GroupingRule("all", "", in_app=("*9*",) * 60, fingerprint=("{{ default }}", "2"))],
)


@given(mixes, st.integers(1, 6), st.data())
def test_a_record_is_decided_the_same_in_any_batch_whatever_a_worker_remembers(
    mix: list[list[tuple[int, int, bool]]], size: int, data: st.DataObject
) -> None:
    log = [
        source(
            offset,
            [
                of(project, 100 * offset + n, deep(kind, tags={"n": "yes"} if tagged else {}))
                for n, (project, kind, tagged) in enumerate(events)
            ],
        )
        for offset, events in enumerate(mix)
    ]

    def decided(batch: int, grouper: Fingerprinter | None = None) -> list[Any]:
        state, found = fresh(), list[Any]()
        for start in range(0, len(log), batch):
            output = run(state, log[start : start + batch], grouper or Fingerprinter(RULES))
            found += [decode_grouped(one.value or b"") for one in output.grouped]
            found += output.rules_skipped
        return sorted(map(repr, found))

    with (
        patch(
            "processors.grouper.rule_budget.MAX_STEPS", data.draw(st.sampled_from([3 * 10**5, 10**6, 10**7]))
        ),
        patch("processors.grouper.rule_budget.EVENT_STEPS", 10**5),
    ):
        whole = decided(len(log), Fingerprinter(RULES))
        warm = Fingerprinter(RULES)
        for project, kind in data.draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3)))):
            warm.group(of(project, 0, deep(kind, tags={"n": "yes"})))
        assert decided(size, warm) == whole
        with patch.object(fingerprinter, "CACHE_BYTES", 0):
            assert decided(size) == whole


def test_a_step_costs_about_the_same_for_a_list_as_for_a_long_text() -> None:
    def seconds_a_step(rules: list[GroupingRule], body: bytes) -> float:
        compiled, view = compile_rules(rules), from_json(body, "js/1", START)
        cost = compiled.searches_of_error.steps(size_of(view))
        times = []
        for _ in range(5):
            start = process_time()
            for rule in compiled.of_error:
                rule.predicate(view)
            times.append(process_time() - start)
        return min(times) / cost

    of_list = seconds_a_step(DEAR, deep(0))
    of_text = seconds_a_step(
        [GroupingRule(f"{n}", f'message:"*q{n}*"', discard=True) for n in range(200)],
        msgspec.json.encode(event(message="q" * 20_000)),
    )
    assert of_list < 6 * of_text


async def test_others_run_between_the_events_of_a_record_and_rules_that_are_removed_meanwhile_end() -> None:
    world = GrouperWorld()
    world.projects = registry(p1=[GroupingRule("one", "type:*", fingerprint=("all",))])
    world.send([of(1, n, deep(n)) for n in range(9)])
    await world.start()

    async def remove() -> None:
        for _ in range(4):
            await asyncio.sleep(0)
        world.projects.apply(b"1", encode_project(Project("1", "p1", "2026-01-01T00:00:00.000Z")))

    with patch.object(grouper_stage, "PAUSE_SECONDS", -1.0):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(world.work())
            tasks.create_task(remove())
    [chunk] = world.grouped()
    rules = [chunk.groupings[index].rule for index in chunk.grouping_of]
    assert rules == ["rule:one"] * 4 + ["stack"] * 5
