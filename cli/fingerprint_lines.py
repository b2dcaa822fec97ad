"""Fingerprints the events of JSONL files."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from edge.validation.repair import has_surrogates, replace_lone_surrogates
from grouping.fingerprint import culprit, grouped, locate, why
from grouping.fingerprint.event_view import decode_identified
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.rules import UNTOUCHED, CompiledRules
from query.event_view import from_json
from schemas.issues import issue_title


class BadLine(Exception):
    """A line that is no event, or a file that can't be read completely."""


class ExplainedEvent(Struct, frozen=True):
    """One event's grouping as the command prints it (contract, section 1); the last three are for people."""

    id: str
    fingerprint: str
    rule: str
    parts: tuple[str, ...]
    discard: bool
    title: str
    culprit: str
    why: tuple[str, ...]


def explain(line: bytes, rules: CompiledRules | None = None) -> ExplainedEvent:
    """The grouping of an event's JSON. Raises BadLine for an invalid event."""
    if has_surrogates(line):
        line = replace_lone_surrogates(line)
    try:
        event = decode_identified(line)
        view = from_json(line, "", 0) if rules else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(str(error) or "nested too deeply") from None
    outcome = rules.apply(view) if rules and view is not None else UNTOUCHED
    marked = apply_in_app_rules(event, outcome.in_app_rules)
    location = locate(marked)
    grouping = grouped(event, outcome, location)
    title = issue_title(event.error.type or "Error", event.error.message or "")
    return ExplainedEvent(
        event.id or "",
        grouping.hex,
        grouping.rule,
        grouping.parts,
        grouping.discard,
        title[:200],
        culprit(event, location),
        tuple(why(marked, grouping.rule, location)),
    )


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines with their 1-based numbers, decompressed for `.gz`. Raises BadLine if reading fails."""
    number = 0
    with file.open("rb") as raw:
        try:
            for number, line in enumerate(gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw, 1):
                if stripped := line.strip():
                    yield number, stripped
        except (OSError, EOFError, zlib.error) as error:
            raise BadLine(f"after line {number}: {error}") from None
