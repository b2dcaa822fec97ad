"""Parameters of which `make test` takes one, and `make test-all` all."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_quick(values: Iterable[object]) -> list[Any]:
    """The first as it is, the others marked `slow`. A tuple is a test's arguments."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=[pytest.mark.slow] if n else []) for n, row in enumerate(rows)]
