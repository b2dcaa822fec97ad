"""Writes every generated file: `python -m schemas.generate`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from schemas.generate.json_schema import SUBJECTS, document
from schemas.generate.reference import env_example, reference

ROOT: Final = Path(__file__).parents[2]
FILES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference.md": reference,
    "docker/.env.example": env_example,
    **{f"schemas/json/{subject}.json": partial(document, subject) for subject in SUBJECTS},
}

if __name__ == "__main__":
    for name, generate in FILES.items():
        (ROOT / name).write_text(generate(), encoding="utf-8")
