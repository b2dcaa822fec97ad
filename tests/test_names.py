"""One word for one thing: what a class is called says it apart from every other."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = (
    *("schemas", "broker", "query", "grouping", "edge", "processors"),
    *("storage", "control", "dashboard", "local", "cli", "svc"),
)


def test_class_names_are_unique() -> None:
    places = defaultdict[str, list[str]](list)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
