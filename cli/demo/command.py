"""`svc demo`, which `make demo` runs: everything on this machine, sample events through it, and proof that each counts once."""

import asyncio
import json
import logging
import random
import shlex
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aiohttp
import click
from rich.console import Console

from cli.demo.checks import ReadApi, StoredEvents
from cli.demo.sample_events import fresh, load_samples, renewed
from cli.projects import CreatedProject, create_project
from cli.send.batches import batches
from cli.send.command import bar
from cli.send.sender import Sender, SendReport
from cli.up import start
from cli.workspace import Workspace
from local.stack import Stack
from schemas.errors import CannotRun, ProjectsUnavailable
from schemas.settings import MigrateSettings, load

PROJECT = "demo"
LATER = 40
"""Events sent after the repeats: once they are visible, the repeats have been through every stage too."""
VISIBLE_SECONDS = 60.0
POLL_SECONDS = 0.05
SDK = "svc-demo/0.1.0"


class DemoFailed(CannotRun):
    """The demo saw something that must not be; the message says what."""


async def make_project(stack: Stack) -> CreatedProject:
    """A new project with its token. Raises CannotRun."""
    try:
        return await create_project(load(MigrateSettings, stack.environ), PROJECT)
    except ProjectsUnavailable as error:
        raise CannotRun(f"the project could not be created: {error}") from error


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> float:
    """Poll until the condition holds; time.monotonic() of that moment. Raises DemoFailed after a minute."""
    limit = time.monotonic() + VISIBLE_SECONDS
    while not await condition():
        if time.monotonic() > limit:
            raise DemoFailed(f"{what} took longer than {VISIBLE_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    return time.monotonic()


async def edge_knows(stack: Stack, project: CreatedProject) -> bool:
    """True once the edge, which follows the projects, takes the new token: an empty batch is answered 202."""
    headers = {"Authorization": f"Bearer {project.token}", "Svc-Sdk": SDK}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{stack.ingest_url}/v1/events:batch", json={"events": []}) as response,
    ):
        return response.status == 202


def encode(events: list[dict[str, Any]]) -> list[bytes]:
    """The events as they travel."""
    return [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() for event in events]


class Demo:
    """One run on a started stack: `sent` holds the ids of all events sent so far."""

    def __init__(self, stack: Stack, project: CreatedProject, api: ReadApi, console: Console) -> None:
        self._stack, self._project, self.api, self._console = stack, project, api, console
        self.sent: set[str] = set()

    def say(self, text: str) -> None:
        """A line for people, also where nobody's terminal is."""
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    async def send(self, events: list[dict[str, Any]], title: str) -> SendReport:
        """Send events with a progress bar. Raises DemoFailed unless all are accepted."""
        with bar(self._console) as progress:
            task = progress.add_task(title, total=len(events), said="")

            def advance(report: SendReport) -> None:
                progress.update(task, completed=report.accepted, said=f"{report.accepted:,} accepted")

            sender = Sender(self._stack.ingest_url, self._project.token, SDK, progress=advance)
            report = await sender.send(batches(encode(events)))
        if not report.clean:
            raise DemoFailed(f"{report.accepted} of {report.events} events were accepted: {report.problems}")
        self.sent |= {event["id"] for event in events}
        return report

    async def seen(self) -> tuple[StoredEvents, float]:
        """What the read API shows once it counts everything sent, and when it did."""
        seen = StoredEvents()

        async def there() -> bool:
            nonlocal seen
            seen = await self.api.all()
            return min(seen.counted, seen.stored) >= len(self.sent)

        try:
            moment = await until(there, f"storing and counting {len(self.sent)} events")
        except DemoFailed as late:
            raise DemoFailed(f"{late}: {'; '.join(seen.differences(self.sent))}") from None
        if differences := seen.differences(self.sent):
            raise DemoFailed("; ".join(differences))
        return seen, moment

    async def run(self, samples: list[dict[str, Any]]) -> None:
        """Send, count, send again, count again. Raises DemoFailed."""
        now, rng = datetime.now(UTC), random.Random()  # noqa: S311 - a spread of times
        first = fresh(samples, now, rng)
        report = await self.send(first, "sending")
        seen, moment = await self.seen()
        self.say(
            f"accepted {report.accepted}, stored {seen.stored}, grouped into {seen.issues} issues that count {seen.counted}; "
            f"the last was visible {moment - report.last_posted:.2f} s after its POST"
        )
        again = await self.send(first, "again")
        later = await self.send(fresh(rng.sample(samples, LATER), now, rng), "later")
        seen, moment = await self.seen()
        self.say(
            f"sent the same {again.accepted} again and {later.accepted} new ones: stored {seen.stored}, "
            f"counted {seen.counted}, nothing twice; the last was visible after {moment - later.last_posted:.2f} s"
        )


def curl_line(stack: Stack, project: CreatedProject, event: dict[str, Any]) -> str:
    """A command for a shell that sends one whole valid event."""
    words = ["curl", "-i", f"{stack.ingest_url}/v1/events"]
    for header in (
        f"Authorization: Bearer {project.token}",
        "Svc-Sdk: curl/8",
        "Content-Type: application/json",
    ):
        words += ["-H", header]
    return shlex.join([*words, "-d", json.dumps(event, separators=(",", ":"))])


def easily_quoted(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """The shortest sample, if possible one that a shell's quotes leave readable."""
    return min(samples, key=lambda event: ("'" in json.dumps(event), len(json.dumps(event))))


def farewell(demo: Demo, stack: Stack, project: CreatedProject, samples: list[dict[str, Any]]) -> None:
    """What a person needs to go on."""
    event = renewed(easily_quoted(samples), datetime.now(UTC))
    demo.say(f"\nproject     {PROJECT} ({project.id})")
    demo.say(f"token       {project.token}")
    demo.say(f"issues      {stack.dashboard_url}")
    demo.say(
        f"one more event (its id makes it count once, however often you send it):\n\n{curl_line(stack, project, event)}\n"
    )


async def prove(demo: Demo, samples: list[dict[str, Any]], stopping: asyncio.Event) -> bool:
    """Run the demo; false when told to stop first. Raises DemoFailed."""
    work = asyncio.create_task(demo.run(samples))
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
        return False
    await work
    return True


async def demonstrate(console: Console, stop_after: bool, stack: Stack, stopping: asyncio.Event) -> int:
    """The demo on a started stack, until told to stop; 0 when every event was stored and counted exactly once."""
    samples = load_samples()
    project = await make_project(stack)
    sign_in = {"Authorization": aiohttp.encode_basic_auth("admin", stack.dashboard.admin_password)}
    try:
        await until(partial(edge_knows, stack, project), "telling the edge about the project")
        async with aiohttp.ClientSession(stack.dashboard_url, headers=sign_in) as session:
            demo = Demo(stack, project, ReadApi(session, project.id), console)
            await until(demo.api.knows_project, "telling the dashboard about the project")
            if not await prove(demo, samples, stopping):
                return 1
    except aiohttp.ClientError as error:
        raise DemoFailed(f"a request of the demo failed: {error}") from error
    farewell(demo, stack, project, samples)
    if not stop_after:
        demo.say("Ctrl-C stops everything")
        await stopping.wait()
    return 0


@click.command()
@click.option(
    "--exit", "stop_after", is_flag=True, help="Stop everything at the end instead of waiting for Ctrl-C."
)
@click.pass_obj
def demo(workspace: Workspace, stop_after: bool) -> None:
    """Start everything, send sample events through it, and show that each is stored and counted exactly once."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    console = Console()
    sys.exit(start(workspace.data_dir, console, then=partial(demonstrate, console, stop_after)))
