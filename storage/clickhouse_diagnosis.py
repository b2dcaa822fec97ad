"""Classifies failed statements: retry later, the server refuses the data, or the statement is wrong. Pure."""

import re
from enum import Enum
from typing import Final

from clickhouse_connect.driver.exceptions import ClickHouseError, Error
from msgspec import Struct


class FailureKind(Enum):
    """How to react to a failure."""

    WAIT = "wait"
    REFUSED = "refused"
    WRONG = "wrong"


class ClickHouseFailure(Struct, frozen=True):
    """A failed statement: `reason` is a short stable word for metrics, `sentence` is for people."""

    kind: FailureKind
    reason: str
    sentence: str


class RetryLater(ClickHouseError):
    """The operation can't be done at present, for a reason other than a server error.

    `reason` is as in `ClickHouseFailure`.
    """

    reason = "notNow"


_COLUMNS: Final = re.compile(r"(?<=\bINSERT|\bSELECT)\([^)]*\)(?= ON )")
"""Columns of a missing grant: a long list would hide the table behind it."""
_REFUSED: Final = frozenset({
    6,  # CANNOT_PARSE_TEXT
    25,  # CANNOT_PARSE_ESCAPE_SEQUENCE
    26,  # CANNOT_PARSE_QUOTED_STRING
    27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
    38,  # CANNOT_PARSE_DATE
    41,  # CANNOT_PARSE_DATETIME
    53,  # TYPE_MISMATCH
    69,  # ARGUMENT_OUT_OF_BOUND
    70,  # CANNOT_CONVERT_TYPE
    72,  # CANNOT_PARSE_NUMBER
    117,  # INCORRECT_DATA
    128,  # TOO_LARGE_ARRAY_SIZE
    131,  # TOO_LARGE_STRING_SIZE
    321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
    349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
    395,  # FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
    407,  # DECIMAL_OVERFLOW
    469,  # VIOLATED_CONSTRAINT
})  # fmt: skip
_WRONG: Final = frozenset({
    42,  # NUMBER_OF_ARGUMENTS_DOESNT_MATCH
    43,  # ILLEGAL_TYPE_OF_ARGUMENT
    59,  # ILLEGAL_TYPE_OF_COLUMN_FOR_FILTER
    62,  # SYNTAX_ERROR, also of a text that is too long
    167,  # TOO_DEEP_AST
    168,  # TOO_BIG_AST
    306,  # TOO_DEEP_RECURSION
    386,  # NO_COMMON_TYPE
    456,  # UNKNOWN_QUERY_PARAMETER
    457,  # BAD_QUERY_PARAMETER
})  # fmt: skip
_TOO_LONG: Final = re.compile(r"HTML Form Exception|URI invalid or too long")
"""Parameters that are too long, for which the server has no code."""
REASONS: Final[dict[int, tuple[str, str]]] = {
    16: ("schema", "the schema is not the one expected: run `svc migrate`"),
    47: ("schema", "the schema is not the one expected: run `svc migrate`"),
    60: ("schema", "a table is missing: run `svc migrate`"),
    81: ("schema", "the database is missing: run `svc migrate`"),
    159: ("slow", "the server took too long"),
    160: ("slow", "the server is too slow"),
    164: ("readOnly", "the user or the server is read-only"),
    202: ("busy", "too many concurrent queries"),
    225: ("keeper", "ClickHouse Keeper doesn't answer"),
    241: ("memory", "out of memory"),
    242: ("readOnly", "the table is read-only"),
    243: ("disk", "out of disk"),
    252: ("tooManyParts", "too many parts: merges don't keep up"),
    285: ("replicas", "too few replicas are up"),
    289: ("replicas", "this replica lacks data of the others"),
    319: ("replicas", "too few replicas have confirmed the insert"),
    372: ("late", "the insert came too long after its checks"),
    497: ("denied", "the user may not do this"),
    516: ("denied", "user or password is wrong"),
    999: ("keeper", "ClickHouse Keeper doesn't answer"),
}


def diagnose(error: ClickHouseError) -> ClickHouseFailure:
    """The classification of an error of the driver.

    Only codes about values are refusals, and only codes about the text of a statement make it wrong. All
    other codes, known or not, are retried: a failing server must not cause dead letters.
    """
    if isinstance(error, RetryLater):
        return ClickHouseFailure(FailureKind.WAIT, error.reason, str(error))
    code = error.code if isinstance(error, Error) else None
    text = _COLUMNS.sub("", " ".join(str(error).split()))[:300]
    if code in _REFUSED:
        return ClickHouseFailure(FailureKind.REFUSED, "refused", text)
    if code in _WRONG or _TOO_LONG.search(text):
        return ClickHouseFailure(FailureKind.WRONG, "wrong", f"our statement is wrong: {text}")
    if code is None:
        return ClickHouseFailure(FailureKind.WAIT, "unavailable", f"ClickHouse doesn't answer: {text}")
    reason, sentence = REASONS.get(code, ("error", "ClickHouse can't take it"))
    return ClickHouseFailure(FailureKind.WAIT, reason, f"{sentence} ({text})")
