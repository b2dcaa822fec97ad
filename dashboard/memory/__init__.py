"""The parts below in memory: what tests stand on. They pass the contract tests of the real ones."""

from dashboard.memory.changes import MemoryChanges
from dashboard.memory.projects import MemoryProjects
from dashboard.memory.reader import MemoryReader

__all__ = ["MemoryChanges", "MemoryProjects", "MemoryReader"]
