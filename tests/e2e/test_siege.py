"""The short form of `make siege`: a hostile token is refused, and the other project is not.

Every honest event is stored once.
"""

from pathlib import Path

import pytest
from rich.console import Console

from bench.siege.__main__ import run_siege
from tests.servers import CACHE

pytestmark = pytest.mark.slow


async def test_hostile_token_harms_no_other_project(tmp_path: Path) -> None:
    result = await run_siege(
        Console(soft_wrap=True),
        tmp_path,
        connections=180,
        attacks=(),
        rate=20,
        events=5,
        quiet=1,
        attacked=2,
        seconds=3,
        workers=1,
        cache=CACHE,
    )
    assert result.held
    assert set(result.answers["wrong tokens"]) == {"401"}
    assert result.answers["past the rate limit"]["429"]
    assert result.answers["held open"]["429"]
    assert set(result.answers["half heads"]) <= {"closed", "not connected"}
    assert result.answers["half heads"]["closed"]
    assert set(result.answers["endless heads"]) <= {"400", "closed"}
    assert "202" not in result.answers["declared bodies"]
    assert set(result.answers["refused events"]) <= {"400", "429"}
