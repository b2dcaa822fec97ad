"""The state of an issue as it is read: rest that was agreed until a time ends by itself, also where no event has come since."""

from typing import Final

_TIME: Final = "parseDateTime64BestEffortOrZero(JSONExtractString(ignore_until, 'time'), 3, 'UTC')"
STATUS: Final = (
    f"if(status = 'ignored' AND JSONHas(ignore_until, 'time') AND {_TIME} <= now64(3, 'UTC'), 'open', status)"
)
"""The column `status` of `issues`, with ended rest as open. The record itself changes with the next event."""
