"""Ordinary rules, sample events, and what the rules cost in the grouping of an event.

Groupers with and without rules alternate over the same events, so that the ratio is valid on a busy machine.
"""

from collections.abc import Sequence
from time import process_time

import msgspec

from cli.demo.sample_events import FILE
from cli.send.batches import read_lines
from grouping.rule_checks import MAX_PATTERNS, MAX_TERMS
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.rule_budget import RuleBudget
from schemas.chunks import ChunkEvent
from schemas.projects import GroupingRule, Project, ProjectRegistry, encode_project

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
AT_THE_LIMITS = [
    *[
        GroupingRule(f"match {n}", f"type:[a{n},b{n},c{n}] file:*report{n}*", fingerprint=("x",))
        for n in range(MAX_TERMS // 4)
    ],
    GroupingRule("marks", "", not_in_app=tuple(f"*/vendor{n}/*" for n in range(MAX_PATTERNS))),
]
SETS = {"none": [], "20 rules": [*MATCHES, *MARKS]}
EVENTS_IN_RECORD = 300


def grouper(rules: Sequence[GroupingRule]) -> Fingerprinter:
    """A grouper for one project with these rules."""
    project = Project("1", "bench", "2026-01-01T00:00:00Z", grouping_rules=tuple(rules))
    registry = ProjectRegistry()
    registry.apply(b"1", encode_project(project))
    return Fingerprinter(registry)


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


def measure(events: Sequence[ChunkEvent], rounds: int) -> dict[str, float]:
    """CPU µs of an event by set of rules, in the best of `rounds`, once caches are warm."""
    groupers = {name: grouper(rules) for name, rules in SETS.items()}
    for one in groupers.values():
        _spent(one, events)
    best = dict.fromkeys(SETS, float("inf"))
    for _ in range(rounds):
        for name, one in groupers.items():
            best[name] = min(best[name], _spent(one, events))
    return best


def _spent(grouper: Fingerprinter, events: Sequence[ChunkEvent]) -> float:
    start = process_time()
    for index, event in enumerate(events):
        if index % EVENTS_IN_RECORD == 0:
            budget = RuleBudget()
        grouper.group(event, budget)
    return (process_time() - start) * 1e6 / len(events)
