"""Remembering what was worked out lately, within a bound of bytes: two generations, of which the older is dropped at once."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A mapping that forgets what has not been asked for lately; `most` bounds the weight of one of its two generations."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """What was kept under the key, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.pop(key, None)
            if found is None:
                return None
            self._keep(key, found)
        return found[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Keep a value that was not there. What weighs more than a sixteenth of a generation isn't kept."""
        if weight * 16 <= self._most:
            self._keep(key, (value, weight))

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _keep(self, key: K, found: tuple[V, int]) -> None:
        if self._weight + found[1] > self._most:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = found
        self._weight += found[1]
