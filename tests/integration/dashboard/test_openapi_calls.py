"""schemathesis reads the document from a running dashboard and calls every operation.

It sends data that fits the schema and data that doesn't.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import encode_basic_auth

from tests.e2e.page_server import PASSWORD, serving

pytestmark = pytest.mark.slow

# No schema can say that a range begins before it ends, that a rule sets something, or that a name is not taken yet.
BEYOND_SCHEMAS = "positive_data_acceptance"


@pytest.fixture(scope="module")
def address(clickhouse_url: str) -> Iterator[str]:
    with serving(clickhouse_url) as started:
        yield started


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_schemathesis_finds_nothing(address: str, mode: str, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/v1/openapi.json",
        "--header", f"Authorization: {encode_basic_auth('admin', PASSWORD)}",
        "--checks", "all", "--exclude-checks", BEYOND_SCHEMAS, "--mode", mode, "--phases", "coverage,fuzzing",
        "--max-examples", "8", "--seed", "1", "--suppress-health-check", "all", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-16000:] + done.stderr[-2000:]
