"""What a text that is no query says to the one who typed it."""


class QueryError(Exception):
    """`position` counts code points from 0; `expected` says what would have fit there; `message` is both for people."""

    def __init__(self, position: int, expected: str) -> None:
        self.position = position
        self.expected = expected
        self.message = f"at position {position}: expected {expected}"
        super().__init__(self.message)
