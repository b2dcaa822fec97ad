"""The operator of a run: `svc` commands and changes of projects while everything is killed.

Some commands are killed too, and repeated.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from json import JSONDecoder
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from bench.chaos.chaos_load import LEAVERS, leaver
from bench.chaos.fleet import of_version
from bench.report import Claim
from control.project_edits import ProjectChanges, update
from control.project_store import ProjectStore
from schemas.change_records import Author
from schemas.errors import ProjectsUnavailable
from schemas.projects import GroupingRule, Project
from schemas.settings import MigrateSettings

LANES = (
    ("comment", "resolve", "merge", "unmerge"),
    ("reconcile", "migrate", "dead-letters"),
    ("erase",),
    ("retention", "rules"),
)
"""Kinds of commands. Lanes run concurrently, as several operators do; a lane does one command at a time."""
FIXED = {
    "reconcile": ["reconcile", "--repair", "--json", "--wait", "2"],
    "migrate": ["migrate"],
    "dead-letters": ["dead-letters", "replay"],
}
PAUSE_SECONDS = (0.5, 8.0)
KILLED_RATE = 0.3
"""Share of commands that are killed once before they are repeated."""
KILLED_SECONDS = (0.4, 4.0)
DONE_SECONDS = 900.0
"""Longest time until a command succeeds; meanwhile its servers are killed, and its change waits behind the backlog."""
RETENTIONS = (60, 90, 120, 365)
RULES = (
    GroupingRule("by type", "type:HttpError", fingerprint=("http", "{{ default }}")),
    GroupingRule("by platform", "platform:javascript", fingerprint=("{{ default }}", "web")),
)
AGAIN_SECONDS = 1.0


class Planned(Struct, frozen=True):
    """A command: its pause after the one before in its lane, when its first try is killed, and a seed for details."""

    number: int
    kind: str
    pause: float
    killed_after: float | None
    choice: float


def plan(rng: random.Random, count: int) -> list[Planned]:
    """`count` commands; each kind once before any comes again."""
    kinds = [kind for lane in LANES for kind in lane]
    rounds = [kind for _ in range(-(-count // len(kinds))) for kind in rng.sample(kinds, len(kinds))]
    return [
        Planned(
            number,
            kind,
            rng.uniform(*PAUSE_SECONDS),
            rng.uniform(*KILLED_SECONDS) if rng.random() < KILLED_RATE else None,
            rng.random(),
        )
        for number, kind in enumerate(rounds[:count])
    ]


class Operator:
    """Carries out `count` commands on `projects` (ids); the seed of `rng` repeats them."""

    def __init__(
        self,
        settings: MigrateSettings,
        environ: Mapping[str, str],
        projects: Sequence[str],
        rng: random.Random,
        count: int,
        console: Console,
        versions: Sequence[Path] = (),
    ) -> None:
        self._plan = plan(rng, count)
        self._settings = settings
        self._environ = dict(environ)
        self._versions = versions
        self._choices = random.Random(count)
        self._projects = projects
        self._console = console
        self._began = time.monotonic()
        self._leavers = [(project, number) for project in range(len(projects)) for number in range(LEAVERS)]
        rng.shuffle(self._leavers)
        self.done: Counter[str] = Counter()
        self.killed = 0
        self.erased: list[tuple[int, str]] = []
        """Users whose events were to be erased: the position of their project and their id."""
        self._merged: list[tuple[str, str]] = []
        self._members = set[str]()
        self.comments: list[str] = []
        """The text of each comment."""

    async def give_commands(self) -> None:
        """Carry out the plan."""
        async with asyncio.TaskGroup() as lanes:
            for lane in LANES:
                lanes.create_task(self._lane([command for command in self._plan if command.kind in lane]))

    async def rebuild(self, source: str | None, killed_after: float) -> None:
        """Rebuild both tables of the stopped processors, from `source` or the default one; the first try is killed."""
        chosen = ["--from", source] if source else []
        await self._svc("rebuild", ["rebuild", "all", "--yes", *chosen], killed_after)

    @property
    def summary(self) -> str:
        """The commands in one line."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.done.items()))
        return f"{self.done.total()} commands ({kinds}), {self.killed} of them killed first"

    def claims(self, texts: Sequence[str]) -> list[Claim]:
        """All planned commands were done, and each comment was stored once; `texts` are all stored ones."""
        return [
            Claim("commands that were planned", len(self._plan), self.done.total() - self.done["rebuild"]),
            Claim("comments stored", len(self.comments), len(texts)),
            Claim("different comments stored", len(self.comments), len({*texts} & {*self.comments})),
        ]

    async def _lane(self, commands: Sequence[Planned]) -> None:
        for command in commands:
            await asyncio.sleep(command.pause)
            if command.kind in {"retention", "rules"}:
                await self._change_project(command)
            else:
                arguments = FIXED.get(command.kind) or await self._arguments(command)
                await self._svc(command.kind, arguments, command.killed_after)

    async def _arguments(self, command: Planned) -> Sequence[str]:
        if command.kind == "erase":
            position, user = self._leavers.pop()
            self.erased.append((position, leaver(user)))
            of = ["--project", self._projects[position], "--user", leaver(user)]
            return ["erase", *of, "--yes", "--json", "--wait", "20"]
        issues = await self._issues(self._project(command))
        issue = issues[int(command.choice * 7) % len(issues)]
        change = [command.kind, issue["id"]]
        match command.kind:
            case "comment":
                self.comments.append(f"chaos {command.number}")
                change.append(self.comments[-1])
            case "merge":
                others = [other for other in issues if other is not issue][:2]
                self._merged += [(issue["id"], other["fingerprints"][0]) for other in others]
                self._members |= {issue["id"], *(other["id"] for other in others)}
                change += [other["id"] for other in others]
            case "unmerge" if self._merged:
                change = ["unmerge", *self._merged.pop()]
            case "unmerge":
                change = ["reopen", issue["id"]]
        return ["issues", *change, "--key", f"chaos-{command.number}"]

    def _project(self, command: Planned) -> str:
        return self._projects[int(command.choice * len(self._projects))]

    async def _issues(self, project: str) -> list[dict[str, Any]]:
        """The issues of a project that were not merged here, once there are enough."""
        while True:
            status, output = await self._output(["issues", "list", project, "--json"])
            # Behind the list, the command may say that there are more.
            issues: list[dict[str, Any]] = JSONDecoder().raw_decode(output)[0] if status == 0 else []
            unmerged = [issue for issue in issues if issue["id"] not in self._members]
            if len(unmerged) > 2:
                return unmerged
            await asyncio.sleep(AGAIN_SECONDS)

    async def _svc(self, kind: str, arguments: Sequence[str], killed_after: float | None) -> None:
        """Run a command until it succeeds; `killed_after` seconds kill its first try."""
        began, output = time.monotonic(), ""
        if killed_after is not None:
            status, _ = await self._output(arguments, killed_after)
            self.killed += status == -signal.SIGKILL
        while time.monotonic() - began < DONE_SECONDS:
            status, output = await self._output(arguments)
            # The exit status of `reconcile` reports differences, which a backlog may explain.
            if status == 0 or (kind == "reconcile" and output.startswith("{")):
                self._finished(kind, f"{' '.join(arguments)} after {time.monotonic() - began:.1f} s")
                return
            await asyncio.sleep(AGAIN_SECONDS)
        self._console.print(f"[red]NOT done:[/] {' '.join(arguments)}: {output[-500:]}")

    async def _output(self, arguments: Sequence[str], seconds: float | None = None) -> tuple[int, str]:
        """Exit status and output of a command that is killed after `seconds`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "cli",
            *arguments,
            env=self._environ | self._version(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        reading = asyncio.create_task(process.communicate())
        try:
            await asyncio.wait([reading], timeout=seconds)
        finally:
            if not reading.done():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output, _ = await reading
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace")

    def _version(self) -> dict[str, str]:
        """The variable for the version of the next command."""
        return of_version(self._choices.choice(self._versions)) if len(self._versions) > 1 else {}

    async def _change_project(self, command: Planned) -> None:
        number, choice = int(self._project(command)), int(command.choice * 97)

        def change(project: Project) -> Project:
            if command.kind == "retention":
                days = RETENTIONS[choice % len(RETENTIONS)]
                return update(project, ProjectChanges(retention_days=days))
            return replace(project, grouping_rules=tuple(RULES[: choice % (len(RULES) + 1)]))

        while True:
            with suppress(ProjectsUnavailable):
                async with ProjectStore(self._settings) as store:
                    await store.edit(number, change, Author("chaos", "command"))
                    break
        self._finished(command.kind, f"project {number}")

    def _finished(self, kind: str, text: str) -> None:
        self.done[kind] += 1
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {'done':8} {kind}: {text}")
