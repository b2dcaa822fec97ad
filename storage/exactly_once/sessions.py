"""The session of a comparison and the insert that follows from it.

The server refuses the insert of a process that was frozen in between. A server whose answers take long refuses
it too: then the comparison is made again in a longer session.
"""

from collections.abc import Mapping
from typing import Any, Final

from storage.clickhouse_diagnosis import diagnose
from storage.client import ClickHouseError, Client
from storage.exactly_once.insert_pauses import Pause
from storage.replicas import begin_session

SESSION_SECONDS: Final = 5
"""How long a process may be frozen between its comparison and its insert."""
_MOST_SECONDS: Final = 40
_PAUSE_FACTOR: Final = 4
"""Writers pause for so many sessions: half of it is left at the comparison, and the server ends a session late."""


class ComparisonSession:
    """Sessions of one process's comparisons, each as long as the answers of the server ask for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seconds = SESSION_SECONDS

    def hold_back(self, pause: Pause) -> None:
        """Let a pause outlast the next session. Raises ClickHouseError."""
        pause.extend(_PAUSE_FACTOR * self._seconds)

    def begin(self) -> Mapping[str, Any]:
        """The settings of its statements. Raises ClickHouseError and AnotherServer."""
        return begin_session(self._client, self._seconds)

    def stretch(self, error: ClickHouseError) -> None:
        """Make the next session twice as long, after one that had ended. Raises any other error."""
        if diagnose(error).reason != "late" or self._seconds >= _MOST_SECONDS:
            raise error
        self._seconds = min(2 * self._seconds, _MOST_SECONDS)
