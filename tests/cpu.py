"""The cost of the tests: CPU seconds by tier, printed after each run, and `--cpu-budget FILE` to hold them.

Counted is the CPU of a test's process, its ended children, and the servers of the run. Machines
differ, and one machine differs by the hour: the budget is in units of a fixed piece of work that each worker
repeats during the run. A third of it runs Python, a third takes fresh memory, a third calls the kernel, since machines
differ in what they do quickly. `--cpu-write FILE` raises a budget to the sums of a run: on a busy machine tests that
wait look more often, so a budget comes from several runs, one of them on a busy machine.
"""

import json
import mmap
import os
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any, Final

import pytest

from tests import forked
from tests.run_servers import RunServers, ended_children

TOLERANCE: Final = 0.15
NOISE: Final = 60
"""Units that a tier may take more in any case: a small one differs by more than the tolerance."""
WORK_EVERY: Final = 50
"""Tests between two measures of the fixed work."""
COLLECTING: Final = "collecting"
FORKED: Final = "processes"
SHARED: Final = "shared"
"""The CPU of processes that end with a worker's last test, such as the browser: it belongs to no tier."""
_DOCUMENT: Final = json.dumps([{"name": f"value {number}", "list": list(range(20))} for number in range(200)])
_PIECE: Final = b"x" * 4096


def cpu_seconds() -> float:
    """CPU of this process and of its children that have ended."""
    return time.process_time() + ended_children()


def fixed_work() -> dict[str, float]:
    """The CPU seconds that a fixed piece of work takes now, by its parts: some ten milliseconds each."""
    seconds = dict[str, float]()
    for part in (_interpret, _touch_memory, _call_kernel):
        began = time.process_time()
        part()
        seconds[part.__name__.strip("_")] = time.process_time() - began
    return seconds


def _interpret() -> None:
    for _ in range(20):
        json.dumps(json.loads(_DOCUMENT), sort_keys=True)


def _touch_memory() -> None:
    with mmap.mmap(-1, 10 * 1024 * 1024) as memory:
        for start in range(0, len(memory), mmap.PAGESIZE):
            memory[start] = 1


def _call_kernel() -> None:
    reading, writing = os.pipe()
    for _ in range(9_000):
        os.write(writing, _PIECE)
        os.read(reading, len(_PIECE))
    os.close(reading)
    os.close(writing)


def tier_of(item: pytest.Item) -> str:
    """The folder's marker; the long forms of a tier count apart."""
    tier = next(name for name in ("unit", "contract", "integration", "e2e") if item.get_closest_marker(name))
    return f"{tier}, slow" if item.get_closest_marker("slow") else tier


def grown(units: Mapping[str, float], budget: Mapping[str, float]) -> list[str]:
    """A sentence for each tier that takes more than its budget and the tolerance."""
    return [
        f"{tier} takes {units[tier]:.0f} units of CPU; its budget is {budget.get(tier, 0):.0f}"
        for tier in sorted(units)
        if units[tier] > budget.get(tier, 0) * (1 + TOLERANCE) + NOISE
    ]


def raised(units: Mapping[str, float], file: Path) -> dict[str, int]:
    """The budget in `file`, if there is one, raised to the CPU of a run."""
    budget = json.loads(file.read_text()) if file.exists() else {}
    return {tier: round(max(units.get(tier, 0), budget.get(tier, 0))) for tier in sorted({*units, *budget})}


class WorkerCosts:
    """A plugin of each process that runs tests."""

    def __init__(self) -> None:
        self.tiers, self.tests = defaultdict[str, float](float), defaultdict[str, float](float)
        self.work = [fixed_work()]
        self._count = 0

    def pytest_collection_finish(self) -> None:
        self.tiers[COLLECTING] += cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._count += 1
        if self._count % WORK_EVERY == 0:
            self.work.append(fixed_work())
        before, shared = cpu_seconds(), self.tiers[SHARED]
        try:
            return (yield)
        finally:
            used = cpu_seconds() - before - (self.tiers[SHARED] - shared)
            self.tiers[tier_of(item)] += used
            self.tests[item.nodeid] += used

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        before = cpu_seconds()
        try:
            return (yield)
        finally:
            if nextitem is None:
                self.tiers[SHARED] += cpu_seconds() - before

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        before = ended_children()
        forked.stop()
        self.tiers[FORKED] += ended_children() - before
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["costs"] = {"tiers": dict(self.tiers), "tests": dict(self.tests), "work": self.work}


class RunCosts:
    """A plugin of the process that reports: sums the CPU of the workers and their servers."""

    def __init__(self, config: pytest.Config, own: WorkerCosts | None, servers: RunServers | None) -> None:
        self._config, self._own, self._servers = config, own, servers
        self._tiers, self._tests = defaultdict[str, float](float), defaultdict[str, float](float)
        self._work = list[dict[str, float]]()
        self._failures: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        costs = getattr(node, "workeroutput", {}).get("costs")
        if costs:
            for tier, seconds in costs["tiers"].items():
                self._tiers[tier] += seconds
            self._tests |= costs["tests"]
            self._work += costs["work"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._own is not None:
            self._tiers, self._tests, self._work = self._own.tiers, self._own.tests, self._own.work
        if self._servers is not None:
            self._tiers |= self._servers.stop()
        budget, write = self._config.getoption("cpu_budget"), self._config.getoption("cpu_write")
        # An interrupted run has no sums: it ends before its workers report.
        if budget is not None and self._work:
            self._failures = grown(self._units(), json.loads(Path(budget).read_text()))
            if self._failures and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if write is not None and self._work:
            Path(write).write_text(json.dumps(raised(self._units(), Path(write)), indent=2) + "\n")

    def _units(self) -> dict[str, float]:
        unit = sum(self._parts().values())
        return {tier: seconds / unit for tier, seconds in self._tiers.items()}

    def _parts(self) -> dict[str, float]:
        """The mean seconds of each part of the fixed work."""
        return {part: mean(each[part] for each in self._work) for part in self._work[0]}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._work:
            return
        terminalreporter.section("CPU seconds")
        units = self._units()
        for tier, seconds in sorted(self._tiers.items()):
            terminalreporter.line(f"{tier:20} {seconds:8.1f} s  {units[tier]:8.0f} units")
        parts = ", ".join(f"{part} {seconds * 1000:.1f}" for part, seconds in self._parts().items())
        terminalreporter.line(f"milliseconds in a unit: {parts}")
        most = sorted(self._tests.items(), key=lambda each: -each[1])[: self._config.getoption("cpu_most")]
        for test, seconds in (each for each in most if each[1] > 1):
            terminalreporter.line(f"{seconds:8.1f} s  {test}")
        for failure in self._failures:
            terminalreporter.line(failure, red=True)


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--cpu-budget", metavar="FILE", help="fail if a tier takes more than this file keeps")
    group.addoption("--cpu-write", metavar="FILE", help="write such a file, or raise it")
    group.addoption("--cpu-most", type=int, default=20, help="tests to print, by their CPU")


def register(config: pytest.Config, servers: RunServers | None) -> None:
    """Count in each process that runs tests, and report in the one that is no worker."""
    own = None if servers else WorkerCosts()
    if own is not None:
        config.pluginmanager.register(own)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunCosts(config, own, servers))
