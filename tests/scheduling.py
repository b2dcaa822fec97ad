"""The tests of each worker: a file at a time, so that a file's servers start once in a run."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = ("tests/integration/storage/shards/",)
"""Folders and files whose tests share processes or servers beyond one file."""


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """In the order of `pytest_collection_modifyitems`; `TOGETHER` counts as one file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((shared for shared in TOGETHER if file.startswith(shared)), file)
