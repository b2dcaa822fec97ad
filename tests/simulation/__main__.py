"""`python -m tests.simulation`: many schedules of new seeds, on every core.

The exit status is 1 if one of them breaks a promise. The order of sets differs from one Python process to the
next, so the interpreter is started with a fixed hash seed.
"""

import gc
import logging
import os
import secrets
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import click

from tests.simulation import probes
from tests.simulation.aims import WANTED
from tests.simulation.draws import Draws, Reached
from tests.simulation.kept import keep, plan_of
from tests.simulation.plan import Seed, seeded
from tests.simulation.planted import ALL, FEW, find, known
from tests.simulation.probes import met
from tests.simulation.run import run

# The logs of the product and the leftovers of its dead processes are noise here.
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
sys.unraisablehook = lambda _: None

_AT_ONCE = 50
"""Schedules of a process, which leaves its garbage when it ends: to look for it would take a quarter of the time."""
_ROUND = 200
_FIRST = 20
"""Schedules after which everything that is made once has been made."""
_MOST_FAILURES = 5
_MANY = 6_000
"""Schedules after which everything wanted must be reached."""
_SHOWN = 8
_SEEDS = 1 << 40
_PLANTED = 1_500
"""Most schedules for a planted fault."""
_SHARE = 0.75


class Result(NamedTuple):
    """The coverage of a schedule, and the broken promise, if any."""

    seed: Seed
    reached: Reached
    broke: str = ""


def results(seeds: Iterable[Seed]) -> list[Result]:
    """Run schedules one after the other."""
    found = []
    for seed in seeds:
        try:
            names, broke = frozenset(run(seed).reached), ""
        except Exception as error:  # noqa: BLE001 - any error of a schedule is its result
            names, broke = frozenset(), f"{type(error).__name__}: {error}"
        found.append(Result(seed, names | met(), broke))
    return found


def drawn(draws: Draws, schedules: int, jobs: int) -> Iterator[Result]:
    """That many schedules, each round drawn by the coverage of the rounds before."""
    probes.install()
    # All processes share the imports and caches: the parser of rules alone takes as long as three schedules.
    results(range(1, _FIRST))
    gc.collect()
    gc.freeze()
    gc.disable()
    with get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        for done in range(0, schedules, _ROUND):
            seeds = draws.take(min(_ROUND, schedules - done))
            for some in pool.imap(
                results, [seeds[at : at + _AT_ONCE] for at in range(0, len(seeds), _AT_ONCE)]
            ):
                for one in some:
                    draws.add(one.seed, one.reached)
                    yield one
    gc.unfreeze()
    gc.collect()


def shrunk(seed: Seed) -> frozenset[int]:
    """The entries of a failing plan that can be left out while it still fails."""
    without: frozenset[int] = frozenset()
    for number in reversed(range(len(plan_of(seed)[1]))):
        if _fails(seed, without | {number}):
            without |= {number}
    return without


def _fails(seed: Seed, without: frozenset[int]) -> bool:
    try:
        run(seed, without)
    except Exception:  # noqa: BLE001 - as above
        return True
    return False


def find_planted(faults: Sequence[str], schedules: int, first: int, jobs: int) -> bool:
    """Find each planted fault in at most so many schedules, and tell the share. Returns whether it is large enough."""
    draws = Draws(first)
    with get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        seeds = dict(zip(faults, pool.imap(known, faults), strict=True))
    unknown = [fault for fault in faults if seeds[fault] is None]
    runs = [one for one in drawn(draws, schedules, jobs) if not one.broke] if unknown else []
    look = partial(find, runs=[(one.seed, one.reached) for one in runs], counts=draws.counts)
    with get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        for fault, (seed, meet) in zip(unknown, pool.imap(look, unknown), strict=True):
            seeds[fault] = seed
            click.echo(f"{fault}: {meet} schedules meet it")
    for fault, known_seed in seeds.items():
        click.echo(f"{fault}: {'not found' if known_seed is None else f'seed {known_seed}'}")
    left = [fault for fault in faults if seeds[fault] is None]
    found = len(faults) - len(left)
    click.echo(f"{found} of {len(faults)} found ({found / len(faults):.0%}) within {schedules:,} schedules")
    return found >= _SHARE * len(faults)


def show(seed: Seed, *, keeps: bool) -> bool:
    """Print a schedule: its plan, the events, and its end; for a failing plan, the entries it needs.

    Returns whether it holds.
    """
    without = shrunk(seed) if _fails(seed, frozenset()) else frozenset()
    shape, entries = plan_of(seed)
    click.echo(f"seed {seed}: {shape}")
    for number, entry in enumerate(entries):
        if number not in without:
            click.echo(f"{entry.at:9.3f}  planned: {entry.what}")
    story: list[str] = []
    try:
        run(seed, without, story)
    except Exception as error:  # noqa: BLE001 - as above
        click.echo("\n".join(story))
        traceback.print_exc()
        if keeps:
            keep(seed, str(error))
        return False
    click.echo("\n".join(story))
    click.echo("every promise holds")
    return True


@click.command()
@click.option("--schedules", default=20_000, show_default=True, help="How many schedules.")
@click.option("--first", type=int, help="The first seed; without it, a random one.")
@click.option(
    "--seed", type=seeded, help="One schedule alone, with its story; a failing one is shrunk first."
)
@click.option("--keep", "keeps", is_flag=True, help="With --seed: keep one that fails, with its plan.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--planted", is_flag=True, help="Find the faults of tests/simulation/planted.py instead.")
@click.option("--few", is_flag=True, help="With --planted: one slip of each area.")
def main(
    schedules: int, first: int | None, seed: Seed | None, keeps: bool, jobs: int, planted: bool, few: bool
) -> None:
    """Run schedules of faults and commands against the product, on models of its servers."""
    if seed is not None:
        sys.exit(not show(seed, keeps=keeps))
    if planted:
        sys.exit(not find_planted(FEW if few else ALL, min(schedules, _PLANTED), first or 1, jobs))
    began, broken, done = time.monotonic(), 0, 0
    first = secrets.randbelow(_SEEDS) if first is None else first
    click.echo(f"seeds from {first} on")
    draws = Draws(first)
    for one in drawn(draws, schedules, jobs):
        done += 1
        if one.broke:
            broken += 1
            click.echo(f"seed {one.seed}: {one.broke}\n  again: make simulate ARGS='--seed {one.seed}'")
        if broken >= _MOST_FAILURES:
            break
    seconds = time.monotonic() - began
    click.echo(f"{done:,} schedules in {seconds:.0f} s, {broken} broken")
    reached = draws.counts
    click.echo(
        f"{len(reached):,} blocks reached, {sum(n <= 2 for n in reached.values())} of them twice at most"
    )
    least = ", ".join(f"{name} {reached[name]}" for name in sorted(WANTED, key=reached.__getitem__)[:_SHOWN])
    click.echo(f"reached least: {least}")
    for off in sorted(
        (str(name) for name in reached if str(name).startswith("no ")), key=lambda name: -reached[name]
    ):
        click.echo(f"not checked: {off} in {reached[off] / done:.1%}")
    missing = done >= _MANY and not all(reached[name] for name in WANTED)
    sys.exit(broken > 0 or missing)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-P", "-m", __package__, *sys.argv[1:]],
            os.environ | {"PYTHONHASHSEED": "0"},
        )
    main()
