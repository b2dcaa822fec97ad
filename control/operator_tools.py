"""The tools of an operator's command: the servers, the pipeline, and who runs the command.

`settle` waits until the pipeline has stored earlier events.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from broker.consumer_lag import passed
from schemas.errors import PipelineNotIdle
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from storage.shards import Servers


class OperatorTools(Struct, frozen=True):
    """The context of a run: the pipeline's consumer `groups`, the seconds to `wait` for them, and the actor `by`."""

    settings: KafkaSettings
    groups: dict[str, list[Topic]]
    servers: Servers
    wait: float
    by: str
    say: Callable[[str], None]

    def settle(self, groups: dict[str, list[Topic]] | None = None) -> None:
        """Wait until the groups, by default all, have read everything in their topics.

        Raises PipelineNotIdle and KafkaError.
        """
        self.say("waiting until earlier events are stored")
        behind = asyncio.run(passed(self.settings, self.groups if groups is None else groups, self.wait))
        if behind is not None:
            raise PipelineNotIdle(
                f"{behind.group} is {behind.records:,} records behind on {behind.topic}: "
                "earlier events are not stored yet"
            )
