"""The fixtures of the Python library's tests."""

from tests.unit.svc.conftest import _untouched_library, ingest, start

__all__ = ["_untouched_library", "ingest", "start"]
