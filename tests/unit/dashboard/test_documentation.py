from pathlib import Path

import pytest

from dashboard.api.api_routes import OPERATIONS
from dashboard.api.operation import Operation

TEXT = (Path(__file__).parents[3] / "docs" / "read-api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_every_operation_is_described(operation: Operation) -> None:
    assert f"| `{operation.method} {operation.path}` |" in TEXT


def test_nothing_is_described_that_does_not_exist() -> None:
    described = sum(line.startswith(("| `GET /", "| `P", "| `DELETE /")) for line in TEXT.splitlines())
    assert described == len(OPERATIONS)
