"""For all tests: a clean environment, a marker by the folder, and the real servers of `tests.servers`."""

import gc
import os
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from local.proxies import bypass_proxies
from tests import cpu
from tests.run_servers import RunServers
from tests.scheduling import FileScheduling
from tests.servers import (  # noqa: F401 - fixtures are found by their names here
    STARTS,
    clickhouse_database_url,
    clickhouse_url,
    kafka_bootstrap,
    topic_prefix,
)

for profile, examples in {"quick": 10, "suite": 20, "long": 200}.items():
    # No test asserts absolute times, and a busy machine draws slowly.
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("suite")

FOLDERS = ("e2e", "integration", "contract", "unit")
"""In the order in which they run: where several workers share the tests, the longest must not be left to the end."""


MEMORY_FILES = Path("/dev/shm")
MEMORY_BYTES = 8 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    cpu.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Remove every variable of ours, and reach our servers without the machine's proxy."""
    bypass_proxies(os.environ)
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        del os.environ[name]
    # Servers write thousands of small files, which cost three times the CPU time on a disk.
    if os.access(MEMORY_FILES, os.W_OK) and shutil.disk_usage(MEMORY_FILES).free > MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FILES))
    servers = None
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        servers = RunServers(STARTS, os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        config.pluginmanager.register(servers)
    cpu.register(config, servers)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the name of its folder, and put the folders in order.

    A test outside these folders needs no server and is marked `unit`.
    """
    here = Path(__file__).parent
    for item in items:
        first = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        item.add_marker(first if first in FOLDERS else "unit")
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, int]:
    """The tier, and within it files in a mixed order: those of one room wait or calculate, as their neighbours do."""
    tier = next(n for n, name in enumerate(FOLDERS) if item.get_closest_marker(name))
    return tier, crc32(item.nodeid.partition("::")[0].encode())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """Our way of `--dist loadfile`."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: they stay to the end."""
    gc.freeze()
