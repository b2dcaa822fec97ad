"""`svc regroup` on the whole way: what it says before is what happens, also where it is killed, and it can be undone."""

import asyncio
import random
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from cli.demo.sample_events import fresh, load_samples
from cli.projects import CreatedProject
from control.project_store import ProjectStore
from local.stack import Stack
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.e2e.test_erasure import command, post, printed
from tests.e2e.whole_stack import project_of, session_of
from tests.eventually import eventually

# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")
KINDS: Final = {
    # Version 2 tells routes apart by their folder,
    "orders": (6, "javascript", "TypeError", [("POST", "/srv/shop/app/api/orders/route.ts")]),
    "users": (3, "javascript", "TypeError", [("POST", "/srv/shop/app/api/users/route.ts")]),
    # and knows what a compiler made of a name.
    "mangled": (4, "ios", "SIGABRT", [("_ZN7storage5Index6lookupERKi", "index.cc")]),
    "demangled": (2, "ios", "SIGABRT", [("storage::Index::lookup(int const&)", "index.cc")]),
    "same": (5, "python", "KeyError", [("total", "/srv/shop/invoice.py")]),
    "dropped": (1, "python", "ValueError", [("parse", "/srv/shop/feed.py")]),
}
"""Number, platform, type and frames of each kind of event."""
EVENTS: Final = sum(kind[0] for kind in KINDS.values())
DROPPED: Final = (1, ["dropped"])
Issues = dict[str, tuple[int, frozenset[str]]]


def events(seed: int) -> list[dict[str, Any]]:
    made = []
    for name, (count, platform, kind, frames) in KINDS.items():
        stack = [
            {"function": function, "file": file, "line": 3, "column": 1, "inApp": True}
            for function, file in frames
        ]
        for sample in fresh([load_samples()[0]] * count, datetime.now(UTC), random.Random(f"{seed} {name}")):
            error = {"type": kind, "message": f"failed in {platform}", "stack": stack}
            made.append({**sample, "platform": platform, "error": error, "tags": {"kind": name}})
    return made


async def issues(stack: Stack, project: CreatedProject) -> Issues:
    """The number of events and the kinds of each issue."""
    async with session_of(stack) as session:
        found: Issues = {}
        async with session.get(f"/api/v1/projects/{project.id}/issues") as answer:
            listed = (await answer.json())["issues"]
        for issue in listed:
            async with session.get(f"/api/v1/issues/{issue['id']}/tags") as answer:
                tags = (await answer.json())["tags"]
            kinds = [value["value"] for tag in tags if tag["key"] == "kind" for value in tag["values"]]
            found[issue["id"]] = (issue["totalEvents"], frozenset(kinds))
        return found


async def until_counted(stack: Stack, project: CreatedProject, total: int) -> Issues:
    async def counted() -> Issues | None:
        found = await issues(stack, project)
        return found if sum(count for count, _ in found.values()) == total else None

    found = await eventually(counted, 60)
    assert found
    equal = await command(stack, "reconcile")
    assert equal.exit_code == 0, equal.output
    return found


def sizes(found: Issues) -> list[tuple[int, list[str]]]:
    return sorted((count, sorted(kinds)) for count, kinds in found.values())


async def test_a_project_is_grouped_otherwise_as_predicted_and_back_again(
    running: tuple[Stack, Supervisor],
) -> None:
    stack, _ = running
    project = await project_of(stack)
    async with ProjectStore(load(MigrateSettings, stack.environ)) as store:
        await store.edit(int(project.id), lambda known: replace(known, grouping_version="v1"))
    await post(stack, project, events(1))
    before = await until_counted(stack, project, EVENTS)
    assert sizes(before) == [
        DROPPED,
        (2, ["demangled"]),
        (4, ["mangled"]),
        (5, ["same"]),
        (9, ["orders", "users"]),
    ]
    issue_of = {kind: issue for issue, (_, kinds) in before.items() for kind in kinds}

    discarded = await command(stack, "issues", "discard", issue_of["dropped"])
    assert discarded.exit_code == 0, discarded.output

    predicted = await printed(stack, "regroup", project.id, "--dry-run")
    (join,), (split,) = predicted["joins"], predicted["splits"]
    assert (join["issue"], join["into"], join["events"]) == (issue_of["demangled"], issue_of["mangled"], 2)
    assert (split["issue"], split["events"], split["isNew"]) == (issue_of["users"], 3, True)
    assert await issues(stack, project) == before

    # Killed at any moment, it is finished by the next run.
    for seconds in (1.5, 2.5):
        killed = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli", "--data-dir", str(stack.data_dir), "regroup", project.id, "--yes", "--json",
            env=dict(stack.environ), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await asyncio.wait([asyncio.create_task(killed.wait())], timeout=seconds)
        if killed.returncode is None:
            killed.kill()
            await killed.wait()
    if (again := await command(stack, "regroup", project.id, "--yes")).exit_code:
        assert "is grouped by v2 already" in again.output
    after = await until_counted(stack, project, EVENTS)
    assert sizes(after) == [DROPPED, (5, ["same"]), (6, ["demangled", "mangled"]), (9, ["orders", "users"])]

    await post(stack, project, events(2))
    grown = await until_counted(stack, project, 2 * EVENTS - 1)
    expected = Counter({issue: count for issue, (count, _) in after.items()})
    goes_into = issue_of | {"users": split["into"], "demangled": join["into"]}
    for kind, (count, *_) in KINDS.items():
        expected[goes_into[kind]] += 0 if kind == "dropped" else count
    assert {issue: count for issue, (count, _) in grown.items()} == expected

    await printed(stack, "regroup", project.id, "--undo", "--yes")
    undone = await until_counted(stack, project, 2 * EVENTS - 1)
    # Events that came meanwhile stay where the new version has put them, the split ones with those that they are alike.
    assert sizes(undone) == [
        DROPPED, (2, ["demangled"]), (10, ["demangled", "mangled"]), (10, ["same"]), (18, ["orders", "users"]),
    ]  # fmt: skip
    await post(stack, project, events(3))
    assert sizes(await until_counted(stack, project, 3 * EVENTS - 2)) == [
        DROPPED, (4, ["demangled"]), (14, ["demangled", "mangled"]), (15, ["same"]), (27, ["orders", "users"]),
    ]  # fmt: skip
    nothing = await command(stack, "regroup", project.id, "--undo", "--yes")
    assert nothing.exit_code == 1
    assert "no change of the grouping to undo" in nothing.output
