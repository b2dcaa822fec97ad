"""Headers of a dead-lettered record; its value stays the original bytes (contract, section 3)."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_PREFIX: Final = "dead-letter-"
_PUT_BACK: Final = _PREFIX + "put-back"


class DeadLetter(Struct, frozen=True):
    """The origin of a record and why it could not be processed. `stage` is the process that dead-lettered it."""

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    at: str
    project_id: str = ""

    def headers(self, original: Iterable[tuple[str, bytes]] = ()) -> list[tuple[str, bytes]]:
        """The headers of the original record, followed by those of the dead letter."""
        ours = [(_PREFIX + field, str(getattr(self, field)).encode()) for field in self.__struct_fields__]
        return [*original, *ours]


def from_headers(headers: Iterable[tuple[str, bytes]]) -> tuple[DeadLetter, list[tuple[str, bytes]]]:
    """The dead letter and the original's headers: the inverse of `DeadLetter.headers`.

    Raises ValueError if a field is missing.
    """
    ours: dict[str, str] = {}
    original = []
    for name, value in headers:
        if name.startswith(_PREFIX):
            ours[name.removeprefix(_PREFIX)] = value.decode()
        else:
            original.append((name, value))
    try:
        dead_letter = DeadLetter(
            topic=ours["topic"],
            partition=int(ours["partition"]),
            offset=int(ours["offset"]),
            stage=ours["stage"],
            reason=ours["reason"],
            at=ours["at"],
            project_id=ours.get("project_id", ""),
        )
    except KeyError as error:
        raise ValueError(f"not a dead letter: no header {_PREFIX}{error.args[0]}") from None
    return dead_letter, original


def replay_marker(offset: int) -> list[tuple[str, bytes]]:
    """Headers of an empty record which marks all dead letters before `offset` as replayed.

    The marker is in the topic itself, so that it lives as long as the dead letters: a committed offset expires sooner.
    """
    return [(_PUT_BACK, str(offset).encode())]


def replayed_before(headers: Iterable[tuple[str, bytes]]) -> int | None:
    """The offset of a replay marker; None for a dead letter."""
    value = next((value for name, value in headers if name == _PUT_BACK), b"")
    return int(value) if value.isdigit() else None
