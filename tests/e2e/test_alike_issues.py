"""A new issue that surely is another one joins it by itself, and stays apart once somebody unmerged it."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.demo.sample_events import fresh, load_samples
from local.stack import Stack
from local.supervisor import Supervisor
from tests.e2e.test_erasure import post
from tests.e2e.whole_stack import project_of, session_of
from tests.eventually import eventually

# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")
NAMED = ("onTyping session.js", "route session.js", "receive session.js", "open socket.js", "loop main.js")
NAMELESS = ("session.js", *NAMED[1:])
OTHER = ("onPresence session.js", *NAMED[1:])


def events(frames: tuple[str, ...], count: int, seed: int) -> list[dict[str, Any]]:
    """A function has no name where a frame is only a file."""
    stack = [
        {"function": function, "file": f"/srv/chat/{file}", "line": 3, "column": 1, "inApp": True}
        for function, _, file in (one.rpartition(" ") for one in frames)
    ]
    error = {
        "type": "TypeError",
        "message": "Cannot read properties of undefined (reading 'name')",
        "stack": stack,
    }
    made = fresh([load_samples()[0]] * count, datetime.now(UTC), random.Random(seed))
    return [{**event, "platform": "javascript", "error": error} for event in made]


async def test_a_new_issue_that_is_surely_another_one_joins_it_for_good_or_until_somebody_says_no(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, _ = running
    project = await project_of(stack)
    async with session_of(stack) as session:

        async def issues() -> dict[str, int]:
            async with session.get(f"/api/v1/projects/{project.id}/issues") as answer:
                return {one["id"]: one["totalEvents"] for one in (await answer.json())["issues"]}

        async def until_counted(*counts: int) -> dict[str, int]:
            async def counted() -> dict[str, int] | None:
                found = await issues()
                return found if sorted(found.values()) == sorted(counts) else None

            found = await eventually(counted, 60)
            assert found
            return found

        await post(stack, project, events(NAMED, 2, seed=1))
        (first,) = await until_counted(2)
        await post(stack, project, events(NAMELESS, 3, seed=2))
        await until_counted(5)
        # What the nameless one fits too, but not the named one, stays an issue of its own.
        await post(stack, project, events(OTHER, 1, seed=3))
        await until_counted(5, 1)
        async with session.get(f"/api/v1/issues/{first}/activity") as answer:
            merged = [one for one in (await answer.json())["activity"] if one["kind"] == "merged"]
        assert {one["by"] for one in merged} == {"grouping"}
        async with session.get(f"/api/v1/issues/{first}") as answer:
            (_, joined) = (await answer.json())["fingerprints"]

        async def unmerged() -> bool:
            async with session.post(
                f"/api/v1/issues/{first}/unmerge",
                json={"fingerprints": [joined]},
                headers={"Idempotency-Key": "apart"},
            ) as answer:
                # A busy machine may not answer in time: the same request is repeated.
                assert answer.status in {200, 503}
                return answer.status == 200

        assert await eventually(unmerged, 60)
        await until_counted(2, 3, 1)
        await post(stack, project, [*events(NAMED, 1, seed=4), *events(NAMELESS, 1, seed=5)])
        await until_counted(3, 4, 1)
