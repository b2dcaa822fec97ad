"""Who changed what: changes of projects, erasures and sign-ins, as records of the topic `issue-activity`."""

from typing import Final, Literal

import msgspec
from msgspec import Struct

Via = Literal["page", "api", "command"]
"""The way of a change."""
ChangeKind = Literal[
    "projectCreated",
    "projectChanged",
    "tokenCreated",
    "tokenRevoked",
    "keyCreated",
    "keyRevoked",
    "rulesChanged",
    "notificationsChanged",
    "viewsChanged",
    "discardChanged",
    "ownersChanged",
    "sourceMapsUploaded",
    "sourceMapsDeleted",
    "projectErased",
    "userErased",
    "signedIn",
    "changeUnconfirmed",
]
NO_PROJECT: Final = "0"
"""The project of a sign-in."""
MAX_TEXT: Final = 2000
_TAG: Final = "change"


class Author(Struct, frozen=True):
    """Who makes a change, and the way."""

    name: str
    via: Via


class Change(Struct, frozen=True, rename="camel", tag_field="record", tag=_TAG):
    """A value of `issue-activity` that is about a project. It is written before the change, so one may be too many.

    `before` and `after` are JSON with the changed fields, cut at 2,000 characters; of lists they have the items
    that differ, of tokens the last four characters. `changeUnconfirmed` names a change that may not have been made.
    """

    id: str
    project_id: str
    kind: ChangeKind
    by: str
    via: Via
    at: str
    before: str = ""
    after: str = ""


class _Tagged(Struct, frozen=True):
    record: str = ""


_decode_tag: Final = msgspec.json.Decoder(_Tagged).decode
decode_change: Final = msgspec.json.Decoder(Change).decode


def is_change(value: bytes) -> bool:
    """Whether a value of `issue-activity` is a `Change`, not a change of an issue. Raises msgspec.DecodeError."""
    return _decode_tag(value).record == _TAG
