"""Results of programs: claims that hold or don't, and figures that must not fall below the kept ones."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec import Struct
from rich.console import Console


class Claim(Struct, frozen=True):
    """A claim with its expected and its actual value."""

    text: str
    expected: int
    found: int

    @property
    def holds(self) -> bool:
        """Whether the values are equal."""
        return self.expected == self.found


def show_claims(console: Console, claims: Iterable[Claim]) -> bool:
    """Print a line for each, and return whether all hold."""
    held = True
    for claim in claims:
        held = held and claim.holds
        mark = "[green]ok[/]" if claim.holds else "[red]NO[/]"
        console.print(f"  {mark} {claim.text}: {claim.expected} expected, {claim.found} found")
    return held


def falls(found: Mapping[str, float], kept: Mapping[str, float], tolerance: float = 0.0) -> list[str]:
    """A sentence for each figure that is missing or below the kept one by more than the tolerance."""
    return [
        f"{name}: {found.get(name, 0.0):.4f}, it was {least:.4f}"
        for name, least in kept.items()
        if name not in found or found[name] < least - tolerance
    ]


def save(report: Struct, path: Path) -> None:
    """Write a report as JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def end(worse: Iterable[str]) -> NoReturn:
    """Exit with 1 if anything is worse, after naming it."""
    sys.exit("\n".join(worse) or 0)
