"""Looking up old ids while the group may rebalance."""

from collections.abc import Collection

from processors.faust_app.fence import RebalanceFence
from processors.grouper.stage import IdLookUp


class InterruptibleLookUp:
    """Ends a look-up once the fence is closed: ClickHouse may be away for longer than the group waits."""

    def __init__(self, stored_ids: IdLookUp, fence: RebalanceFence) -> None:
        self._stored_ids = stored_ids
        self._fence = fence

    async def among(self, ids: Collection[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """As `IdLookUp.among`. Raises Interrupted."""
        async with self._fence.interruptible():
            return await self._stored_ids.among(ids)
