"""`svc demo`: starts everything on this machine, sends sample events and verifies that each counts exactly once."""

import asyncio
import json
import logging
import random
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import chain, count
from typing import Any

import aiohttp
import click
from rich.console import Console

from cli.demo.demo_checks import ReadApi, StoredEvents
from cli.demo.sample_events import fresh, load_samples, renewed
from cli.projects import CreatedProject, create_project
from cli.send.batch_sender import Sender, SendReport
from cli.send.send_batches import batches
from cli.send.send_command import bar
from cli.up import start
from cli.workspace import Workspace
from control.project_store import ProjectStore
from local.local_stack import Stack
from schemas.environment import load
from schemas.errors import CannotRun, ProjectsUnavailable
from schemas.settings import MigrateSettings
from schemas.version import service_version

PROJECT = "demo"
LATER = 40
"""Events sent after the repeats: once these are visible, every stage has processed the repeats too."""
VISIBLE_SECONDS = 300.0
"""Generous, for a busy machine."""
POLL_SECONDS = 0.05
SDK = f"svc-demo/{service_version()}"


class DemoFailed(CannotRun):
    """A check of the demo failed."""


async def make_project(stack: Stack) -> CreatedProject:
    """A new project with its token: `demo`, or `demo-2` and so on where there is one. Raises CannotRun."""
    settings = load(MigrateSettings, stack.environ)
    try:
        async with ProjectStore(settings) as store:
            known = {project.name for project in store.all()}
        return await create_project(settings, new_name(known))
    except ProjectsUnavailable as error:
        raise CannotRun(f"the project could not be created: {error}") from error


def new_name(known: Collection[str]) -> str:
    """The first name for a demo's project that none has yet."""
    names = chain([PROJECT], (f"{PROJECT}-{number}" for number in count(2)))
    return next(name for name in names if name not in known)


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> float:
    """Poll until the condition holds; returns that time.monotonic(). Raises DemoFailed after VISIBLE_SECONDS."""
    limit = time.monotonic() + VISIBLE_SECONDS
    while not await condition():
        if time.monotonic() > limit:
            raise DemoFailed(f"{what} took longer than {VISIBLE_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    return time.monotonic()


async def edge_knows(stack: Stack, project: CreatedProject) -> bool:
    """True once the edge accepts the new token: an empty batch is answered with 202."""
    headers = {"Authorization": f"Bearer {project.token}", "Svc-Sdk": SDK}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{stack.ingest_url}/v1/events:batch", json={"events": []}) as response,
    ):
        return response.status == 202


def encode(events: list[dict[str, Any]]) -> list[bytes]:
    """The events as JSON."""
    return [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() for event in events]


class Demo:
    """One run on a started stack; `sent` has the ids of all sent events."""

    def __init__(self, stack: Stack, project: CreatedProject, api: ReadApi, console: Console) -> None:
        self._stack, self._project, self.api, self._console = stack, project, api, console
        self.sent: set[str] = set()

    def say(self, text: str) -> None:
        """Print a line, also without a terminal."""
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    async def send_samples(self, events: list[dict[str, Any]], title: str) -> SendReport:
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

    async def stored(self) -> tuple[StoredEvents, float]:
        """Wait until the read API counts everything sent; returns its answer and the time."""
        result = StoredEvents()

        async def complete() -> bool:
            nonlocal result
            try:
                result = await self.api.all()
            except aiohttp.ClientResponseError as error:
                if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                return False
            return min(result.counted, result.stored) >= len(self.sent)

        try:
            moment = await until(complete, f"storing and counting {len(self.sent)} events")
        except DemoFailed as late:
            raise DemoFailed(f"{late}: {'; '.join(result.differences(self.sent))}") from None
        if differences := result.differences(self.sent):
            raise DemoFailed("; ".join(differences))
        return result, moment

    async def send_twice(self, samples: list[dict[str, Any]]) -> None:
        """Send and count, then repeat the same events and count again. Raises DemoFailed."""
        now, rng = datetime.now(UTC), random.Random()  # noqa: S311 - a spread of times
        first = fresh(samples, now, rng)
        report = await self.send_samples(first, "sending")
        result, moment = await self.stored()
        self.say(
            f"accepted {report.accepted}, stored {result.stored}, "
            f"grouped into {result.issues} issues that count {result.counted}; "
            f"the last was visible {moment - report.last_posted:.2f} s after its POST"
        )
        repeated = await self.send_samples(first, "again")
        later = await self.send_samples(fresh(rng.sample(samples, LATER), now, rng), "later")
        result, moment = await self.stored()
        self.say(
            f"sent the same {repeated.accepted} again and {later.accepted} new ones: stored {result.stored}, "
            f"counted {result.counted}, nothing twice; the last was visible after {moment - later.last_posted:.2f} s"
        )


def curl_line(stack: Stack, project: CreatedProject, event: dict[str, Any]) -> str:
    """A shell command that sends one valid event."""
    words = ["curl", "-i", f"{stack.ingest_url}/v1/events"]
    for header in (
        f"Authorization: Bearer {project.token}",
        "Svc-Sdk: curl/8",
        "Content-Type: application/json",
    ):
        words += ["-H", header]
    return shlex.join([*words, "-d", json.dumps(event, separators=(",", ":"))])


def easily_quoted(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """The shortest sample, if possible one without single quotes."""
    return min(samples, key=lambda event: ("'" in json.dumps(event), len(json.dumps(event))))


def farewell(demo: Demo, stack: Stack, project: CreatedProject) -> None:
    """Print the project, its token and the address."""
    demo.say(f"\nproject     {project.name} ({project.id})")
    demo.say(f"token       {project.token}")
    demo.say(f"issues      {stack.dashboard_url}")


def invite(demo: Demo, stack: Stack, project: CreatedProject, samples: list[dict[str, Any]]) -> None:
    """Print a command that sends another event, and how to stop."""
    event = renewed(easily_quoted(samples), datetime.now(UTC))
    demo.say(
        "one more event (its id makes it count once, however often you send it):\n\n"
        f"{curl_line(stack, project, event)}\n\n"
        "Ctrl-C stops everything"
    )


async def prove(demo: Demo, samples: list[dict[str, Any]], stopping: asyncio.Event) -> bool:
    """Run the demo; false if stopped first. Raises DemoFailed."""
    work = asyncio.create_task(demo.send_twice(samples))
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
    """Run the demo on a started stack until stopped; 0 if every event was stored and counted exactly once."""
    samples = load_samples()
    project = await make_project(stack)
    sign_in = {"Authorization": aiohttp.encode_basic_auth("admin", stack.dashboard.admin_password)}
    try:
        await until(partial(edge_knows, stack, project), "announcing the project to the edge")
        async with aiohttp.ClientSession(stack.dashboard_url, headers=sign_in) as session:
            demo = Demo(stack, project, ReadApi(session, project.id), console)
            await until(demo.api.knows_project, "announcing the project to the dashboard")
            if not await prove(demo, samples, stopping):
                return 1
    except aiohttp.ClientError as error:
        raise DemoFailed(f"a request of the demo failed: {error}") from error
    farewell(demo, stack, project)
    if not stop_after:
        invite(demo, stack, project, samples)
        await stopping.wait()
    return 0


@click.command()
@click.option(
    "--exit", "stop_after", is_flag=True, help="Stop everything at the end instead of waiting for Ctrl-C."
)
@click.pass_obj
def demo(workspace: Workspace, stop_after: bool) -> None:
    """Start everything, send sample events, and verify that each is stored and counted exactly once."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    console = Console()
    sys.exit(start(workspace.data_dir, console, then=partial(demonstrate, console, stop_after)))
