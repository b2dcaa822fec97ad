"""Imports go one way and in no circle, each framework has its door, and modules declared pure load no framework."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.syntax import nodes

ROOT = Path(__file__).parent.parent
MAY_IMPORT: dict[str, set[str]] = {
    "schemas": set(),
    "broker": {"schemas"},
    "runtime": {"schemas", "broker"},
    "query": {"schemas"},
    "grouping": {"schemas", "query"},
    "edge": {"schemas", "broker", "runtime"},
    "processors": {"schemas", "broker", "grouping", "query"},
    "storage": {"schemas", "broker", "query", "grouping"},
    "control": {"schemas", "broker", "query", "storage"},
    "sourcemaps": {"schemas", "grouping", "storage"},
    "rebuild": {"schemas", "broker", "query", "grouping", "processors", "storage", "control"},
    "notify": {"schemas", "broker", "query", "storage", "sourcemaps"},
    "dashboard": {"schemas", "broker", "query", "grouping", "storage", "sourcemaps", "control", "notify"},
    "local": {"schemas", "broker", "runtime", "storage"},
    "cli": {
        *("schemas", "broker", "runtime", "query", "grouping", "edge", "processors"),
        *("storage", "sourcemaps", "control", "rebuild", "notify", "dashboard", "local", "svc"),
    },
    "svc": set(),
}
"""The rooms of the product from the bottom up, each with those beneath it that it may import."""
FOLDERS: dict[str, set[str]] = {
    "processors": set(),
    "processors.grouper": {"processors"},
    "processors.aggregator": {"processors"},
    "processors.faust_app": {"processors", "processors.grouper", "processors.aggregator"},
    "storage": set(),
    "storage.tables": {"storage"},
    "storage.exactly_once": {"storage", "storage.tables"},
    "storage.read": {"storage", "storage.tables"},
    "storage.maintain": {"storage", "storage.tables", "storage.exactly_once"},
    "storage.write": {"storage", "storage.tables", "storage.exactly_once", "storage.maintain"},
}
"""The same within two rooms. Grouper and aggregator don't import each other; maintenance doesn't import the writer."""
PURE = (
    *("schemas", "query", "grouping"),
    *(
        "edge.validation.validate",
        "edge.delivery.segments",
        "broker.message",
        "broker.dead_events",
    ),
    "processors.positions",
    *(
        f"processors.grouper.{name}"
        for name in (
            "batch",
            "compaction",
            "record_counts",
            "dedupe",
            "dedup_log",
            "event_outline",
            "fingerprinter",
            "id_index",
            "log_clock",
            "lru_cache",
            "recovered",
            "replay_start",
        )
    ),
    *(
        f"processors.aggregator.{name}"
        for name in ("batch_changes", "issue_fold", "issue_merges", "lifecycle", "position", "totals")
    ),
    *(f"storage.tables.{name}" for name in ("event_columns", "packs", "record_rows")),
    *(f"storage.exactly_once.{name}" for name in ("block_plan", "block_tokens", "blocks", "rejections")),
    "storage.write.flush_policy",
    *(
        f"notify.{name}"
        for name in (
            "notification_fold",
            "matching",
            "readable_message",
            "quiet_hours",
            "rule_input",
            "rule_queue",
        )
    ),
    *(
        f"sourcemaps.{name}"
        for name in ("event_frames", "matching", "positions", "upload_check", "worker_messages")
    ),
    *("control.project_edits", "dashboard.view", "schemas.release_order"),
    *("dashboard.auth.access", "dashboard.auth.proxy_identity"),
)
"""Modules, and whole rooms, that decide without I/O.

They load none of FRAMEWORKS, directly or through imports."""
FRAMEWORKS = {
    "aiohttp",
    "aiokafka",
    "asyncio",
    "clickhouse_connect",
    "click",
    "faust",
    "mode",
    "prometheus_client",
}
DOORS = {
    "aiokafka": ("broker", "processors.faust_app", "bench"),
    "clickhouse_connect": ("storage", "local", "bench"),
    "faust": ("processors.batch_table", "processors.faust_app", "bench"),
    "mode": ("processors.faust_app", "bench"),
}
ERRORS = {"schemas.errors", "broker.errors", "storage.errors"}
"""The modules of exceptions that one room raises and another catches."""
INTEGRATIONS = {
    "celery": {"celery"},
    "django": {"asgiref", "django"},
    "flask": {"flask"},
    "sentry": {"sentry_sdk"},
    "starlette": {"starlette"},
}
"""Modules of the reporting library that only an application of that framework imports."""


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every module of the product and its benchmarks by name."""
    return {name_of(path): path for room in (*MAY_IMPORT, "bench") for path in (ROOT / room).rglob("*.py")}


@cache
def imports(name: str) -> dict[str, int]:
    """The modules that a module names in its import statements, at any place, with their lines."""
    found: dict[str, int] = {}
    for node in nodes(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            within = [f"{node.module}.{alias.name}" for alias in node.names]
            known = [each for each in within if each in modules()]
            found |= dict.fromkeys(known, node.lineno)
            if len(known) < len(within):
                found[node.module] = node.lineno
    return found


def of(room: str) -> Iterator[str]:
    """The modules of a room."""
    return (name for name in modules() if name == room or name.startswith(f"{room}."))


def top(name: str) -> str:
    """The package at the top."""
    return name.partition(".")[0]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_lower_rooms(room: str) -> None:
    others = {*MAY_IMPORT, "bench", "tests"} - MAY_IMPORT[room] - {room}
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in of(room)
        for imported, line in imports(name).items()
        if top(imported) in others
    ]
    assert wrong == []


@pytest.mark.parametrize("framework", DOORS)
def test_a_framework_is_imported_only_through_its_doors(framework: str) -> None:
    wrong = [
        f"{name}:{line}"
        for name in modules()
        for imported, line in imports(name).items()
        if top(imported) == framework and not name.startswith(DOORS[framework])
    ]
    assert wrong == []


def test_imports_have_no_circle() -> None:
    finished: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " imports ".join((*path[path.index(name) :], name))
        if name not in finished:
            for imported in imports(name):
                if imported in modules() and imported != name:
                    visit(imported, (*path, name))
            finished.add(name)

    for name in modules():
        visit(name, ())


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_lower_folders(folder: str) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in of(top(folder))
        if folder_of(name) == folder
        for imported in imports(name)
        if imported in modules()
        and top(imported) == top(folder)
        and folder_of(imported) not in FOLDERS[folder] | {folder}
    ]
    assert wrong == []


def folder_of(name: str) -> str:
    """The folder of FOLDERS that a module is in."""
    while name not in FOLDERS:
        name = name.rpartition(".")[0]
    return name


def part(name: str) -> str:
    """The folder of its room that a module is in; a module of no folder is a part by itself."""
    return ".".join(name.split(".")[:2]) if len(modules()[name].relative_to(ROOT).parts) > 2 else name


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_the_folders_of_a_room_have_no_circle(room: str) -> None:
    # Nor one that leads through modules of no folder.
    own = [(name, imported) for name in of(room) for imported in imports(name) if top(imported) == room]
    reached = {(part(name), part(imported)) for name, imported in own if imported in modules()}
    while more := {(a, d) for a, b in reached for c, d in reached if b == c} - reached:
        reached |= more
    folders = {part(name) for name in of(room) if part(name) != name} - {room}
    assert [(a, b) for a, b in sorted(reached) if {a, b} <= folders and a < b and (b, a) in reached] == []


def test_pure_modules_load_no_framework() -> None:
    names = sorted({name for room in PURE for name in of(room)})
    assert all(room in modules() for room in PURE)
    program = (
        "import importlib, json, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(json.dumps(sorted({FRAMEWORKS!r} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT, capture_output=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_reporting_library_needs_the_standard_library_alone() -> None:
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in of("svc")
        for imported, line in imports(name).items()
        if top(imported)
        not in sys.stdlib_module_names | {"svc"} | INTEGRATIONS.get(name.rpartition(".")[2], set())
    ]
    assert wrong == []


def test_docker_is_no_package() -> None:
    # It would hide the docker SDK from testcontainers.
    assert not (ROOT / "docker" / "__init__.py").exists()


@cache
def exceptions() -> dict[str, str]:
    """The module of each exception class of the product."""
    classes = {
        node.name: (name, {base.id for base in node.bases if isinstance(base, ast.Name)})
        for name in modules()
        if top(name) != "bench"
        for node in nodes(modules()[name])
        if isinstance(node, ast.ClassDef)
    }
    raised = {"Exception", "RuntimeError", "ValueError", "KafkaError", "ClickHouseError"}
    while more := {name for name, (_, bases) in classes.items() if bases & raised} - raised:
        raised |= more
    return {name: module for name, (module, _) in classes.items() if name in raised}


def test_an_exception_that_crosses_a_border_is_declared_in_one_of_three_modules() -> None:
    wrong = [
        f"{name} catches {alias.name} of {node.module}"
        for name in modules()
        for node in nodes(modules()[name])
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if exceptions().get(alias.name) == node.module
        and top(node.module) not in {top(name), "svc"}
        and node.module not in ERRORS
    ]
    assert wrong == []


def test_no_child_takes_code_from_the_folder_where_a_person_stands() -> None:
    """`python -m` and `python -c` look there first; the path of a script is safe."""
    unsafe = re.compile(r"sys\.executable,\s*(?:\"-W\", \"\w+\",\s*)?\"-[mc]\"|sys\.executable\} -[mc]")
    files = [file for folder in (*MAY_IMPORT, "bench", "tests") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 400
    assert [str(file.relative_to(ROOT)) for file in files if unsafe.search(file.read_text())] == []


def test_no_address_is_put_together_without_the_brackets_of_ipv6() -> None:
    """`schemas.addresses.host_port` writes them."""
    files = {
        str(file.relative_to(ROOT)): file for folder in MAY_IMPORT for file in (ROOT / folder).rglob("*.py")
    }
    joined = re.compile(r"host\)?\}:\{")
    assert sorted(name for name, file in files.items() if joined.search(file.read_text())) == [
        "schemas/addresses.py"
    ]
