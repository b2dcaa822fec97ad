"""All operations of the API, in the order of the contract's table."""

from typing import Final

from dashboard.api import (
    artifacts_api,
    change_log_api,
    changes_api,
    events_api,
    issues_api,
    keys_api,
    notifications_api,
    pipeline_api,
    projects_api,
    rules_api,
    stats_api,
    tags_api,
    views_api,
)
from dashboard.api.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *projects_api.OPERATIONS,
    *keys_api.OPERATIONS,
    *issues_api.OPERATIONS,
    *changes_api.OPERATIONS,
    *events_api.OPERATIONS,
    *tags_api.OPERATIONS,
    *stats_api.OPERATIONS,
    *rules_api.OPERATIONS,
    *notifications_api.OPERATIONS,
    *artifacts_api.OPERATIONS,
    *views_api.OPERATIONS,
    *change_log_api.OPERATIONS,
    *pipeline_api.OPERATIONS,
)
