"""All operations of the API, in the order of the contract's table."""

from typing import Final

from dashboard.api import (
    changes,
    events,
    issues,
    notifications,
    pipeline,
    projects,
    rules,
    stats,
    tags,
    views,
)
from dashboard.api.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *projects.OPERATIONS,
    *issues.OPERATIONS,
    *changes.OPERATIONS,
    *events.OPERATIONS,
    *tags.OPERATIONS,
    *stats.OPERATIONS,
    *rules.OPERATIONS,
    *notifications.OPERATIONS,
    *views.OPERATIONS,
    *pipeline.OPERATIONS,
)
