"""`svc erase` on the whole way: what was erased is gone from the read API too, for good."""

import asyncio
import json
import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import svc
from cli.demo.sample_events import fresh, load_samples
from cli.projects import CreatedProject
from cli.send.batches import batches
from cli.send.sender import Sender
from local.stack import Stack
from runtime.supervisor import Supervisor
from schemas.times import iso
from tests.e2e.whole_stack import SDK, encoded, project_of, session_of
from tests.eventually import eventually

# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")
ERASED, OTHER = "to-be-erased", "somebody-else"
SECRET, HARMLESS = "Card 41117777 is refused", "Card 10000000 is refused"


def events_of(user: str, message: str, count: int, *, seed: int, age: int) -> list[dict[str, Any]]:
    """Events of one user in one issue, some seconds old: only the message differs from those of others."""
    made = fresh([load_samples()[0]] * count, datetime.now(UTC), random.Random(seed))
    stack = [{"file": "src/pay.js", "function": "pay", "line": 3, "column": 1, "inApp": True}]
    error = {"type": "PayError", "message": message, "stack": stack}
    sent = iso(time.time_ns() // 1_000_000 - age * 1000)
    return [{**event, "timestamp": sent, "user": {"id": user}, "error": error} for event in made]


async def command(stack: Stack, *arguments: str) -> Result:
    """Run a subcommand in a thread: it has loops of its own."""
    given = ["--data-dir", str(stack.data_dir), *arguments]
    return await asyncio.to_thread(CliRunner().invoke, svc, given, env=dict(stack.environ))


async def printed(stack: Stack, *arguments: str) -> Any:
    """The JSON of a subcommand that went well."""
    result = await command(stack, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def post(stack: Stack, project: CreatedProject, events: list[dict[str, Any]]) -> None:
    report = await Sender(stack.ingest_url, project.token, SDK).send(batches(encoded(events)))
    assert report.clean, report.problems


async def test_an_erased_users_words_are_gone_and_stay_away(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, _ = running
    project = await project_of(stack)
    await post(stack, project, events_of(OTHER, HARMLESS, 5, seed=1, age=60))
    async with session_of(stack) as session:

        async def issues() -> list[dict[str, Any]]:
            async with session.get(f"/api/v1/projects/{project.id}/issues") as answer:
                found: list[dict[str, Any]] = (await answer.json())["issues"]
                return found

        async def counted(total: int) -> bool:
            return total == sum(int(issue["totalEvents"]) for issue in await issues())

        async def first() -> bool:
            return await counted(5)

        async def second() -> bool:
            found = await issues()
            return [(issue["totalEvents"], issue["message"]) for issue in found] == [(8, SECRET)]

        await eventually(first, 60)
        await post(stack, project, events_of(ERASED, SECRET, 3, seed=2, age=10))
        await eventually(second, 60)
        done = await printed(stack, "erase", "--project", project.id, "--user", ERASED, "--yes")
        assert done["events"] == 3
        (issue,) = await issues()
        assert issue["message"] == HARMLESS
        # A change makes the processors write the record again: it must not have the words any more.
        await printed(stack, "issues", "assign", issue["id"], "bob")

        async def written_again() -> bool:
            (issue,) = await issues()
            return (issue["message"], issue["assignee"], issue["totalEvents"]) == (HARMLESS, "bob", 8)

        await eventually(written_again)
        equal = await command(stack, "reconcile")
        assert equal.exit_code == 0, equal.output
        report = await printed(stack, "erase", "--project", project.id, "--yes")
        assert {one["table"] for one in report["tables"] if one["rowsAfter"]} == set()
        async with session.get(f"/api/v1/issues/{issue['id']}") as answer:
            assert answer.status == 404
        equal = await command(stack, "reconcile", "--repair")
        assert equal.exit_code == 0, equal.output
        projects = json.loads((await command(stack, "projects", "list", "--json")).stdout)
        assert project.id not in {one["id"] for one in projects}
