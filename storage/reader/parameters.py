"""Values that a statement sends beside its text."""

from msgspec import Struct


class Parameters:
    """Collects values; what stands in the SQL text is only the name and type of each, such as `{p0:String}`."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self._places: dict[tuple[str, str], str] = {}

    def add(self, value: object, kind: str) -> str:
        """The placeholder of a value; `kind` is a ClickHouse type. Equal values share one."""
        seen = (kind, repr(value))
        if seen not in self._places:
            name = f"p{len(self.values)}"
            self.values[name] = value
            self._places[seen] = f"{{{name}:{kind}}}"
        return self._places[seen]

    def moment(self, ms: int) -> str:
        """The placeholder of a Unix time in milliseconds, as a column of times compares with it."""
        return self.add(f"{ms // 1000}.{ms % 1000:03}", "DateTime64(3, 'UTC')")


class Sql(Struct, frozen=True):
    """A statement ready to be sent: its text, and the values of its placeholders.

    `raw` names the columns of the answer that are bytes, not text.
    """

    text: str
    values: dict[str, object]
    raw: tuple[str, ...] = ()
