"""Imports go one way, and each framework has its doors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"schemas", "edge", "storage", "grouping", "processors", "dashboard", "svc", "local", "bench", "tests"}
MAY_IMPORT = {
    "schemas": set[str](),
    "edge": {"schemas"},
    "storage": {"schemas"},
    "grouping": {"schemas", "storage"},
    "processors": {"schemas", "storage", "grouping"},
    "dashboard": {"schemas", "storage", "grouping"},
    "svc": set[str](),
}
PURE = {
    "edge": ("admit", "violations", "repair", "lenient"),
    "grouping": ("rules", "fingerprint", "trial", "checks", "cost", "globs", "variables"),
    "processors": (
        *("dedupe", "logclock", "fold", "positions", "increments"),
        *("lifecycle", "releases", "figures", "merges", "changes"),
    ),
    "storage": ("rows", "query"),
}
FRAMEWORKS = {"aiohttp", "aiokafka", "faust", "clickhouse_connect", "asyncio", "mode"}
INTEGRATIONS = {
    "celery": {"celery"},
    "django": {"asgiref", "django"},
    "flask": {"flask"},
    "starlette": {"starlette"},
}
"""Modules of the reporting library that an application of that framework imports, and nobody else."""
DOORS = {
    "faust": ("processors", "bench"),
    "mode": ("processors", "bench"),
    "clickhouse_connect": ("storage", "local", "bench", "tests"),
}


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Top-level package names that a file imports, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0], node.lineno


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_lies_beneath_it(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(package)
        for name, line in imports(path)
        if name in OURS - allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("framework", DOORS)
def test_a_framework_is_imported_only_through_its_doors(framework: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for package in OURS - set(DOORS[framework]) - {"tests"}
        for path in modules(package)
        for name, line in imports(path)
        if name == framework
    ]
    assert wrong == []


@pytest.mark.parametrize(("package", "module"), [(p, m) for p, ms in PURE.items() for m in ms])
def test_a_pure_module_imports_no_framework(package: str, module: str) -> None:
    paths = [*(ROOT / package).glob(f"{module}.py"), *(ROOT / package / module).rglob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for name, line in imports(path)
        if name in FRAMEWORKS
    ]
    assert wrong == []


def test_grouping_needs_of_storage_the_query_language_alone() -> None:
    lines = [
        line.strip()
        for path in modules("grouping")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("from storage", "import storage"))
    ]
    assert lines
    assert all(line.startswith(("from query.", "from query.event_fields ")) for line in lines)


def test_the_reporting_library_needs_the_standard_library_alone() -> None:
    import sys

    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules("svc")
        for name, line in imports(path)
        if name not in sys.stdlib_module_names | {"svc"} | INTEGRATIONS.get(path.stem, set())
    ]
    assert wrong == []


def test_docker_is_no_package() -> None:
    # It would hide the docker SDK from testcontainers.
    assert not (ROOT / "docker" / "__init__.py").exists()
