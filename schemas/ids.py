"""Identifiers: version 7 uuids, project tokens, and hashes of issues and users."""

import secrets
import struct
import time
import uuid
import zlib
from hashlib import blake2b
from typing import Final

TOKEN_PREFIX: Final = "svc_pk_"  # noqa: S105  # a public marker, not a secret
SECRET_PREFIX: Final = "svc_sk_"  # noqa: S105  # the marker of a secret, not one
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_TOKEN_LETTERS: Final = 26


def uuid7(now_ms: int | None = None) -> uuid.UUID:
    """A uuid of version 7 (RFC 9562, section 5.7); `now_ms` is Unix time in milliseconds."""
    ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    value = (ms & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return uuid.UUID(int=value)


def uuid7_ms(raw: bytes) -> int:
    """The Unix time in milliseconds in a 16-byte uuid of version 7."""
    return int.from_bytes(raw[:6], "big")


def is_uuid7(raw: bytes) -> bool:
    """Whether a 16-byte uuid is of version 7, the only one that carries a time."""
    return raw[6] >> 4 == 7


def id_text(raw: bytes) -> str:
    """A 16-byte uuid in its canonical text, several times faster than `uuid.UUID`."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def encode_token(value: uuid.UUID) -> str:
    """`svc_pk_` and 26 lower-case Crockford base32 characters of the 16 bytes (protocol, section 5)."""
    return TOKEN_PREFIX + _letters_of(value.int)


def _letters_of(number: int) -> str:
    letters = []
    for _ in range(_TOKEN_LETTERS):
        number, digit = divmod(number, 32)
        letters.append(_ALPHABET[digit])
    return "".join(reversed(letters))


def decode_token(token: str) -> uuid.UUID | None:
    """The uuid of a token, or None if the token is malformed (section 5)."""
    letters = token.removeprefix(TOKEN_PREFIX)
    if len(letters) != _TOKEN_LETTERS or len(token) != len(TOKEN_PREFIX) + _TOKEN_LETTERS:
        return None
    number = 0
    for letter in letters:
        digit = _VALUES.get(letter)
        if digit is None:
            return None
        number = number * 32 + digit
    if number >> 128:
        return None
    value = uuid.UUID(int=number)
    return value if value.version == 7 else None


def new_token(now_ms: int | None = None) -> str:
    """A fresh project token."""
    return encode_token(uuid7(now_ms))


def new_secret_key() -> str:
    """A fresh secret key: `svc_sk_` and the letters of 128 random bits; a token's bits also have the time."""
    return SECRET_PREFIX + _letters_of(secrets.randbits(128))


def new_project_id() -> int:
    """A random project id, 1 to 2^31-1, so that creators need no coordination."""
    return secrets.randbelow((1 << 31) - 1) + 1


def event_partition(project: int, event_id: bytes, partitions: int) -> int:
    """The partition of `events` for an event id of a project (contract, section 3)."""
    return zlib.crc32(f"{project}/{id_text(event_id)}".encode()) % partitions


def project_seed(project: int) -> int:
    """The CRC-32 state of a project, for `partition_of`."""
    return zlib.crc32(b"%d/" % project)


def partition_of(seed: int, event_id: str, partitions: int) -> int:
    """`event_partition` for an id as canonical text (lower case, dashed), without building its bytes."""
    return zlib.crc32(event_id.encode(), seed) % partitions


_ISSUE_KEY = struct.Struct(">QQ")


def issue_id(project: int, fingerprint: int) -> int:
    """The issue that a fingerprint opens in a project: a deterministic unsigned 64-bit number."""
    digest = blake2b(_ISSUE_KEY.pack(project, fingerprint), digest_size=8, person=b"svc-issue").digest()
    return int.from_bytes(digest, "big")


def user_hash(project: int, user_id: str) -> int:
    """The hash of a user for counting: unsigned, 64 bits, never 0 (0 means no user)."""
    digest = blake2b(
        user_id.encode("utf-8", "replace"), digest_size=8, key=project.to_bytes(8, "big")
    ).digest()
    return int.from_bytes(digest, "big") or 1


def hex64(value: int) -> str:
    """Sixteen lower-case hexadecimal digits, the external form of fingerprints and issue ids."""
    return f"{value:016x}"


def parse_hex64(text: str) -> int | None:
    """The number of a text from `hex64`, or None for any other text."""
    if len(text) != 16 or any(c not in "0123456789abcdef" for c in text):
        return None
    return int(text, 16)
