"""The programs of the first steps compile, and call only functions of the library."""

import ast
import importlib

import pytest

from dashboard.pages.onboarding import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_and_calls_existing_names(name: str) -> None:
    tree = ast.parse(PROGRAMS[name])
    imported = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    assert len(imported) == 1
    assert imported[0].split(".")[0] == "svc"
    calls = {
        ast.unparse(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("svc.")
    }
    assert "svc.init" in calls
    importlib.import_module(imported[0])
    for call in calls:
        module, _, function = call.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_middleware_of_django_has_its_name() -> None:
    module, _, function = "svc.django.middleware".rpartition(".")
    assert f'"{module}.{function}"' in PROGRAMS["Django"]
    assert callable(getattr(importlib.import_module(module), function))
