"""Rules of a project as people write them, a grouper with them, and the demo's events as the edge writes them."""

from collections.abc import Sequence

import msgspec

from cli.demo.sample_events import FILE
from cli.send.send_batches import read_lines
from processors.grouper.fingerprinter import Fingerprinter
from schemas.chunks import ChunkEvent
from schemas.projects import GroupingRule
from tests.unit.processors.grouper.grouper_world import registry

MATCHES = [
    GroupingRule(f"match {n}", match, fingerprint=("{{ default }}", f"group {n}"))
    for n, match in enumerate(
        [
            "type:HttpError message:*psp.example.com*",
            "file:*report*",
            "message:*ResizeObserver*",
            "environment:staging release:2.*",
            "tenant:acme",
            "type:TimeoutError platform:android",
            "function:com.example.Guard.*",
            "timeout",
            "sdk:web/1.*",
            "-environment:production type:ChunkLoadError",
        ]
    )
]
MARKS = [
    GroupingRule(f"mark {n}", "", not_in_app=(pattern,))
    for n, pattern in enumerate(
        [
            "*/vendor/*",
            "*retry*",
            "com.example.Guard.*",
            "*/generated/*",
            "*Middleware*",
            "src/lib/log.ts",
            "*.pb.go",
            "*/polyfills.*",
            "wrap*",
            "*/node_modules/@ours/*",
        ]
    )
]


def grouper(rules: Sequence[GroupingRule]) -> Fingerprinter:
    """A grouper for one project with these rules."""
    return Fingerprinter(registry(rules))


def sample_events() -> list[ChunkEvent]:
    """The demo's events in the form that the edge writes."""
    return [
        ChunkEvent(
            1,
            number.to_bytes(16),
            1_790_000_000_000,
            "web/1.0",
            msgspec.json.format(line, indent=-1),
        )
        for number, line in enumerate(read_lines(FILE))
    ]
