"""The table `erasures`: requested erasures and their stage.

It has only a salted, slow hash of a user's id.
"""

import secrets
import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import scrypt
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from storage.client import Client

Kind = Literal["user", "project"]
Stage = Literal["listing", "deleting", "done"]
STAGES: Final[tuple[Stage, ...]] = ("listing", "deleting", "done")
COLUMNS: Final = (
    "project_id", "id", "kind", "stage", "salt", "digest", "by", "begun", "ended", "report", "version",
)  # fmt: skip
READ: Final = """
    SELECT project_id, id, kind, stage, salt, digest, by, begun, ended, report FROM erasures FINAL
    WHERE project_id = {project:UInt32} ORDER BY begun"""
_NEVER: Final = datetime.fromtimestamp(0, UTC)
_SALT_BYTES: Final = 16
_DIGEST_BYTES: Final = 24
# 16 MB and about 50 ms per guess, against enumeration of ids.
COST: Final = {"n": 1 << 14, "r": 8, "p": 1}


class Erasure(Struct, frozen=True):
    """One erasure: a row of the table `erasures`.

    In `listing` nothing is deleted yet. In `deleting` the list is complete, and a later run can resume it.
    """

    project: int
    id: str
    kind: Kind
    stage: Stage
    salt: str
    digest: str
    by: str
    begun: datetime
    ended: datetime = _NEVER
    report: str = ""


def read(client: Client, project: int) -> list[Erasure]:
    """A project's erasures, oldest first. Raises ClickHouseError."""
    rows = client.query(READ, parameters={"project": project}).result_rows
    return [_erasure(row) for row in rows]


def begin(client: Client, project: int, kind: Kind, by: str, *, salt: str = "", digest: str = "") -> Erasure:
    """Record a new erasure. Raises ClickHouseError."""
    stage: Stage = "listing" if kind == "user" else "deleting"
    new = Erasure(project, str(uuid.uuid4()), kind, stage, salt, digest, by, _now())
    _write(client, new)
    return new


def advance(client: Client, erasure: Erasure, stage: Stage, report: str = "") -> Erasure:
    """Record an erasure's next stage. Raises ClickHouseError."""
    ended = _now() if stage == "done" else _NEVER
    changed = replace(erasure, stage=stage, ended=ended, report=report)
    _write(client, changed)
    return changed


def salt_of(known: Iterable[Erasure]) -> str:
    """The salt of a project, shared by its users, so that finding an erased user takes a single slow hash."""
    return next((erasure.salt for erasure in known if erasure.salt), "") or secrets.token_hex(_SALT_BYTES)


def digest(user: str, salt: str) -> str:
    """The hash of a user's id."""
    word = user.encode("utf-8", "surrogatepass")
    return scrypt(word, salt=bytes.fromhex(salt), dklen=_DIGEST_BYTES, **COST).hex()


def of_user(known: Sequence[Erasure], user: str) -> list[Erasure]:
    """The erasures of a user that have started deleting."""
    digests = {salt: digest(user, salt) for salt in {erasure.salt for erasure in known if erasure.salt}}
    return [
        erasure
        for erasure in known
        if erasure.salt and erasure.digest == digests[erasure.salt] and erasure.stage != "listing"
    ]


def _erasure(row: Sequence[Any]) -> Erasure:
    project, number, kind, stage, salt, hashed, by, begun, ended, report = row
    return Erasure(int(project), str(number), kind, stage, salt, hashed, by, _utc(begun), _utc(ended), report)


def _write(client: Client, erasure: Erasure) -> None:
    version = (STAGES.index(erasure.stage) + 1) * 10**15 + time.time_ns() // 1_000_000
    row = [
        *(erasure.project, uuid.UUID(erasure.id), erasure.kind, erasure.stage, erasure.salt, erasure.digest),
        *(erasure.by, erasure.begun, erasure.ended, erasure.report, version),
    ]
    client.insert("erasures", [row], column_names=list(COLUMNS))


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)
