"""The pipeline's lag without Kafka: as it was set."""

import asyncio

from broker.pipeline_lag import Lag, PipelineLag


class FixedLag(PipelineLag):
    """As `broker.pipeline_lag.PipelineLag`; nothing waits until a test says so."""

    def __init__(self) -> None:
        self.lag = Lag(is_known=True)

    async def run(self) -> None:
        """Look at nothing."""
        await asyncio.Event().wait()
