"""The way of one event in `docs/architecture.md` is the way through the code.

The test follows the definitions and imports of the files.
"""

import ast
import re
from itertools import groupby
from pathlib import Path

import pytest
from msgspec import Struct

from tests.syntax import nodes

ROOT = Path(__file__).parent.parent
PRODUCT = {
    "broker",
    "cli",
    "control",
    "dashboard",
    "edge",
    "grouping",
    "local",
    "notify",
    "processors",
    "query",
    "rebuild",
    "runtime",
} | {
    "schemas",
    "sourcemaps",
    "storage",
}
MOST_FILES = 30


class Step(Struct, frozen=True):
    """A row of the list."""

    stage: str
    file: str
    begin: str


def section() -> str:
    """The section that lists the way."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.partition("\n## One event, file by file\n")[2].partition("\n## ")[0]


STEPS = [
    Step(*row)
    for row in re.findall(r"^\| ([a-z A-Z]+) \| `([^`]+)` \| `([^`]+)` \|", section(), re.MULTILINE)
]
SKIPPED = re.findall(r"`([a-z_/]+\.py)`", section().rpartition("| it is about | files |")[2])
SHARED = ("schemas/", "broker/", "query/", "grouping/")


def file_of(module: str) -> str:
    """The file of a module, or the folder of a package."""
    path = module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").exists() else path


def imported(file: str) -> set[str]:
    """The files of the product that a file imports from, anywhere in it.

    For a name that it imports from a package's `__init__`, the package.
    """
    files = set()
    for node in nodes(ROOT / file):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PRODUCT:
            modules = {file_of(f"{node.module}.{name.name}") for name in node.names}
            there = {path for path in modules if path.endswith(".py")}
            files |= there or {file_of(node.module)}
        elif isinstance(node, ast.Import):
            files |= {file_of(name.name) for name in node.names if name.name.partition(".")[0] in PRODUCT}
    return files


def defines(file: str, name: str) -> bool:
    """Whether a file defines a function, or a class with a method."""
    module = nodes(ROOT / file)[0]
    assert isinstance(module, ast.Module)
    body = module.body
    for part in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == part
        ]
        if not found:
            return False
        body = found[0].body
    return True


def called(file: str) -> set[str]:
    """The names of the methods that a file calls, its own attributes among them; so it reaches its parameters."""
    calls = (node.func for node in nodes(ROOT / file) if isinstance(node, ast.Call))
    return {call.attr.lstrip("_") for call in calls if isinstance(call, ast.Attribute)}


def test_the_way_is_at_most_thirty_files() -> None:
    files = [step.file for step in STEPS]
    assert 10 < len(files) <= MOST_FILES
    assert len(files) == len(set(files))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.file)
def test_a_step_begins_at_a_definition_of_its_file(step: Step) -> None:
    assert defines(step.file, step.begin)


@pytest.mark.parametrize(
    "stage", [[*steps] for _, steps in groupby(STEPS, key=lambda step: step.stage)], ids=lambda s: s[0].stage
)
def test_each_file_of_a_stage_is_called_by_one_before_it(stage: list[Step]) -> None:
    for number, step in enumerate(stage[1:], 1):
        before = [earlier.file for earlier in stage[:number]]
        assert any(
            step.file in imported(file) or step.begin.rpartition(".")[2] in called(file) for file in before
        )


def test_other_imports_of_the_event_path_are_listed_with_reasons() -> None:
    files = {step.file for step in STEPS}
    found = {path for file in files for path in imported(file) if not path.startswith(SHARED)} - files
    assert sorted(SKIPPED) == sorted(found)
