"""Real parts' doubles in memory: what tests stand on. They pass the contract tests of the real ones."""

from tests.memory.changes import MemoryChanges
from tests.memory.projects import MemoryProjects
from tests.memory.reader import MemoryReader

__all__ = ["MemoryChanges", "MemoryProjects", "MemoryReader"]
