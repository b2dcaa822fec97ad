"""A cache that is bounded by weight."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A cache of two generations: the older one is dropped as a whole. `limit` bounds the weight of one generation."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """The value of the key, or None."""
        entry = self._young.get(key)
        if entry is None:
            entry = self._old.pop(key, None)
            if entry is None:
                return None
            self._add(key, entry)
        return entry[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Add a value that is not in the cache. One heavier than a sixteenth of a generation is not cached."""
        if weight * 16 <= self._limit:
            self._add(key, (value, weight))

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _add(self, key: K, entry: tuple[V, int]) -> None:
        if self._weight + entry[1] > self._limit:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = entry
        self._weight += entry[1]
