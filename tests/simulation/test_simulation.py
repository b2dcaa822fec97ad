"""The simulation itself: it repeats exactly, it shrinks failing plans, and it finds planted bugs.

`make simulate` runs the schedules.
"""

import os
import subprocess
import sys
from collections import Counter

import msgspec
import pytest

from tests.simulation.draws import Draws
from tests.simulation.kept import plan_of
from tests.simulation.plan import Seed
from tests.simulation.planted import FEW
from tests.simulation.slips import SLIPS, Slip, slipped

SHRINK = """
from tests.simulation.__main__ import shrunk
from tests.simulation.planted import FAULTS, planted
from tests.simulation.plan import plan

seed = FAULTS["a repair that sends nothing"].seed
with planted("a repair that sends nothing"):
    print(len(plan(seed)[1]), len(shrunk(seed)))
"""

KEPT = """
from tests.simulation.__main__ import results
from tests.simulation.kept import kept

print(len(kept()) > 9, [one for one in results(kept()) if one.broke])
"""


def simulation(*arguments: str) -> str:
    """The output of a run, with the order of sets that `make simulate` has."""
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_planted_faults_of_each_area_are_found() -> None:
    printed = simulation("-m", "tests.simulation", "--planted", "--few", "--schedules", "2000")
    assert [line.rpartition(": seed ")[0] for line in printed.splitlines()[:-1]] == list(FEW)


def test_equal_runs_draw_equal_seeds_which_name_their_plans() -> None:
    def seeds() -> list[Seed]:
        draws = Draws(5)
        for seed in (first := draws.take(40)):
            draws.add(seed, {len(str(seed)), "everywhere"})
        return [*first, *draws.take(40)]

    drawn = seeds()
    assert drawn == seeds()
    assert {str(seed).count(".") for seed in drawn} == {0, 1, 2}
    assert len({msgspec.json.encode(plan_of(seed)) for seed in drawn}) == len(set(drawn))


def test_seldom_reached_blocks_are_drawn_more_often() -> None:
    draws = Draws(5)
    for seed in range(1000):
        draws.add(seed, {"everywhere"})
    draws.add("7.2000", {"everywhere", "rarely"})
    parents = Counter(str(seed).rpartition(".")[0] for seed in draws.take(400))
    assert parents["7.2000"] > parents["0"]


def test_a_slip_fails_loudly_once_its_line_is_gone() -> None:
    with pytest.raises(LookupError), slipped(Slip("schemas.ids.hex64", "no such text", "")):
        pass
    for slip in SLIPS.values():
        with slipped(slip):
            pass


@pytest.mark.parametrize("seed", ["5012.32", "5083.16", "7006.16"])
def test_a_seed_repeats_its_story(seed: str) -> None:
    """Addresses differ from one Python process to the next, and so does the time of day."""
    first = simulation("-m", "tests.simulation", "--seed", seed)
    assert "every promise holds" in first
    assert simulation("-m", "tests.simulation", "--seed", seed) == first


@pytest.mark.slow
def test_a_failing_plan_is_shrunk_to_the_needed_entries() -> None:
    entries, unneeded = map(int, simulation("-c", SHRINK).split())
    assert 0 < unneeded < entries


def test_each_seed_that_broke_a_promise_holds_with_the_plan_that_it_had() -> None:
    assert simulation("-c", KEPT) == "True []\n"
