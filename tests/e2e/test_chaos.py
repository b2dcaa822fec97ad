"""The short form of `make chaos`: random deaths under load, every count exact.

The test prints its seed; `python -m bench.chaos --seed` repeats the run.
"""

import random
from pathlib import Path

import pytest
from rich.console import Console

from bench.chaos.__main__ import run_chaos
from cli.demo.sample_events import FILE
from tests.servers import CACHE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("spread", [False, True], ids=["one server each", "three brokers and shards"])
async def test_random_deaths_lose_nothing_and_count_nothing_twice(tmp_path: Path, spread: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    console = Console(soft_wrap=True)
    console.print(f"seed {seed}")
    result = await run_chaos(
        console,
        seed,
        tmp_path,
        events=6_000,
        rate=500,
        kills=4,
        broker_restarts=1,
        scalings=1,
        # Those over several servers have separate tests.
        commands=0 if spread else 4,
        spread=spread,
        other_version=None,
        rebuild=False,
        data=FILE,
        cache=CACHE,
    )
    assert result.exact
