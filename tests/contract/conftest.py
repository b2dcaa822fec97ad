"""The live edge as a fixture."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.edge.live_edge import LiveEdge, live_edge


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[LiveEdge]:
    async with live_edge(tmp_path) as running:
        yield running
