"""Files of payload dictionaries: those shipped with the product, and a deployment's own (`docs/decisions/payloads.md`).

Number n is the file `n.zstd-dictionary`. Numbers from `FIRST_OWN` on are a deployment's own, in the folder SVC_PAYLOAD_DICTIONARIES,
each with a checksum in `n.sha256`, because a truncated file is a valid but different dictionary.
"""

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

import zstandard

from schemas.errors import BadSetting, MissingDictionary

ID_BASE: Final = 32_768
"""Dictionary ids below are reserved by zstd's registry: dictionary n has the id ID_BASE + n."""
SHIPPED: Final = 1
"""The newest dictionary that ships with the product."""
FIRST_OWN: Final = 1000
LAST: Final = 32_767
"""A frame's header has two bytes for the id."""
_FILE: Final = re.compile(r"(\d{4,5})\.zstd-dictionary")


class Dictionaries:
    """The dictionaries of a process; `folder` has the deployment's own, if any."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def own(self) -> list[int]:
        """Numbers of the deployment's own dictionaries, in order. Raises OSError."""
        return sorted(self._own())

    def newest(self) -> int:
        """The number that new events are compressed with. Raises OSError."""
        return max(self._own(), default=SHIPPED)

    def content(self, number: int) -> bytes:
        """The bytes of a dictionary. Raises MissingDictionary."""
        if number >= FIRST_OWN:
            return self._own_content(number)
        file = resources.files("schemas") / "dictionaries" / f"{number}.zstd-dictionary"
        if not file.is_file():
            raise MissingDictionary(f"payload dictionary {number} ships with a newer version of the product")
        return file.read_bytes()

    def check(self) -> None:
        """Read all own dictionaries of the deployment. Raises BadSetting if the folder or one of them can't be used."""
        try:
            for number in self.own():
                self.content(number)
        except (OSError, MissingDictionary) as error:
            raise BadSetting(f"SVC_PAYLOAD_DICTIONARIES: {error}") from None

    def _own(self) -> Iterator[int]:
        if self.folder is None:
            return
        for file in self.folder.iterdir():
            match = _FILE.fullmatch(file.name)
            if match and FIRST_OWN <= int(match[1]) <= LAST:
                yield int(match[1])

    def _own_content(self, number: int) -> bytes:
        if self.folder is None:
            raise MissingDictionary(
                f"payload dictionary {number} is missing: set SVC_PAYLOAD_DICTIONARIES to the folder that has it"
            )
        file = self.folder / f"{number}.zstd-dictionary"
        try:
            content, checksum = (
                file.read_bytes(),
                (self.folder / f"{number}.sha256").read_text("ascii").strip(),
            )
        except (OSError, UnicodeDecodeError) as error:
            raise MissingDictionary(
                f"payload dictionary {number} is missing: put it and its sum into {self.folder} ({error})"
            ) from None
        dict_id = zstandard.ZstdCompressionDict(content).dict_id()
        if hashlib.sha256(content).hexdigest() != checksum or dict_id != ID_BASE + number:
            raise MissingDictionary(
                f"payload dictionary {number} is damaged: {file} is not what its sum says"
            )
        return content


def add_dictionary(folder: Path, number: int, content: bytes) -> Path:
    """Write a new dictionary to a folder, its checksum first; returns its file. Raises OSError, also if the number exists."""
    file = folder / f"{number}.zstd-dictionary"
    if file.exists():
        raise FileExistsError(f"{file} exists: a dictionary is never replaced")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (
        (f"{number}.sha256", hashlib.sha256(content).hexdigest().encode() + b"\n"),
        (file.name, content),
    ):
        part = folder / f".{name}.part"
        part.write_bytes(data)
        part.replace(folder / name)
    return file
