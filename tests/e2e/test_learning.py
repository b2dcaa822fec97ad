"""What a project's events show is learnt, and only new events move; users overrule it."""

import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from cli.demo.sample_events import fresh, load_samples
from cli.projects import CreatedProject
from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard.learning import ProjectLearning
from local.stack import Stack
from local.supervisor import Supervisor
from schemas.environment import load
from schemas.projects import LearntFact, Project
from schemas.settings import DashboardSettings
from storage.reader.reader import Reader
from storage.shards import reader_urls
from tests.e2e.test_erasure import post
from tests.e2e.whole_stack import project_of, session_of
from tests.eventually import eventually
from tests.unit.grouping.test_learning import WORDS, unlike

# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")


def events(errors: Iterable[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    errors = list(errors)
    made = fresh([load_samples()[0]] * len(errors), datetime.now(UTC), random.Random(seed))
    return [
        {**event, "platform": "python", "error": error} for event, error in zip(made, errors, strict=True)
    ]


def stored(caller: str, message: str) -> dict[str, Any]:
    """An error in `write`, which many call."""
    stack = [
        {"function": function, "file": f"shop/{file}.py", "line": 3, "inApp": True}
        for function, file in (("write", "orm"), (caller, "views"))
    ]
    return {"type": "StorageError", "message": message, "stack": stack}


class Shop:
    """A project of the running stack, and what learns it."""

    def __init__(
        self, stack: Stack, made: CreatedProject, learning: ProjectLearning, projects: ProjectStore
    ) -> None:
        self.stack, self.made, self.learning, self.projects = stack, made, learning, projects
        self._seeds = iter(range(100))

    async def send(self, *errors: dict[str, Any]) -> None:
        await post(self.stack, self.made, events(errors, next(self._seeds)))

    async def issues(self) -> dict[str, int]:
        async with (
            session_of(self.stack) as session,
            session.get(f"/api/v1/projects/{self.made.id}/issues?limit=100") as answer,
        ):
            return {one["id"]: one["totalEvents"] for one in (await answer.json())["issues"]}

    async def counted(self, *counts: int) -> dict[str, int]:
        async def are_counted() -> dict[str, int] | None:
            found = await self.issues()
            return found if sorted(found.values()) == sorted(counts) else None

        found = await eventually(are_counted, 60)
        assert found
        return dict(found)

    async def counted_in_all(self, events: int) -> dict[str, int]:
        async def are_counted() -> dict[str, int] | None:
            found = await self.issues()
            return found if sum(found.values()) == events else None

        found = await eventually(are_counted, 60)
        assert found
        return dict(found)

    async def learnt(self, kind: str) -> LearntFact:
        """What it learns, once all that was sent is stored with its payload."""

        async def is_learnt() -> list[LearntFact]:
            await self.learning.look(int(self.made.id))
            project = self.projects.get(int(self.made.id))
            return [fact for fact in (project.learnt if project else ()) if fact.kind == kind]

        (fact,) = await eventually(is_learnt, 60)
        assert isinstance(fact, LearntFact)
        return fact


@asynccontextmanager
async def opened(stack: Stack) -> AsyncIterator[Shop]:
    """A new project."""
    settings = load(DashboardSettings, stack.environ)
    reader = Reader.open(reader_urls(settings))
    try:
        async with ProjectStore(settings) as projects:
            made = await project_of(stack)
            learning = ProjectLearning(projects, reader, Commands(settings), CollectorRegistry())
            yield Shop(stack, made, learning, projects)
    finally:
        await reader.close()


async def test_a_helper_is_learnt_and_its_issue_goes_on_until_it_is_overruled(
    running: tuple[Stack, Supervisor],
) -> None:
    async with opened(running[0]) as shop:
        often, other = stored("show_cart", "out of space"), stored("show_order", "quota spent")
        seen = [stored(f"show_{WORDS[n]}", message) for n, message in enumerate(unlike(10))]
        await shop.send(*seen, *[often] * 12)
        (first,) = await shop.counted(22)
        fact = await shop.learnt("helper")
        assert (fact.text, fact.callers, fact.messages) == ("write in shop/orm.py", 11, 11)

        async def sent_until(is_apart: bool) -> dict[str, int]:
            """The issues once the grouper has followed the change of the project."""
            while True:
                before = await shop.issues()
                await shop.send(other)
                after = await shop.counted_in_all(sum(before.values()) + 1)
                if (after[first] == before[first]) is is_apart:
                    return after

        # What most events are like stays; other problems are issues of their own from now on.
        before = await sent_until(is_apart=True)
        await shop.send(often, other, stored("show_order", "out of space"))
        after = await shop.counted_in_all(sum(before.values()) + 3)
        assert (len(before), len(after)) == (2, 3)
        assert after[first] == before[first] + 1

        def overrule(project: Project) -> Project:
            return replace(project, learnt=tuple(replace(one, overruled=True) for one in project.learnt))

        assert await shop.projects.edit(int(shop.made.id), overrule)
        assert len(await sent_until(is_apart=False)) == 3


async def test_issues_that_differ_in_a_word_alone_join(running: tuple[Stack, Supervisor]) -> None:
    async with opened(running[0]) as shop:

        def unknown(name: str) -> dict[str, Any]:
            return {"type": "LookupError", "message": f"no such customer {name} in store", "stack": []}

        await shop.send(*[unknown(name) for name in WORDS[:8]])
        await shop.counted(*[1] * 8)
        assert (await shop.learnt("varies")).text == "no such customer <*> in store"
        await shop.counted(8)
        await shop.send(unknown("zed"), unknown(WORDS[0]))
        found = await shop.counted_in_all(10)
        assert max(found.values()) >= 9
