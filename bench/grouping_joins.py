"""Joins of issues by `grouping.alike`, as if the labelled events had come in the order of their ids. No I/O but the clock."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from time import process_time

from msgspec import Struct

from bench.grouping_scores import Label, ratio
from grouping.alike import SURE, Neighbours, trace_of
from grouping.fingerprint import Fingerprint, GroupingEvent


class JoinScore(Struct, frozen=True, rename="camel"):
    """Issues that join by themselves, and less alike ones that are suggested: how many are the same problem, and how many aren't."""

    right: int = 0
    wrong: int = 0
    suggested_right: int = 0
    suggested_wrong: int = 0

    @property
    def precision(self) -> float:
        """The share of joins that are right."""
        return ratio(self.right, self.right + self.wrong)


class Joins(Struct):
    """The score, the fingerprint that each one joined, and the mean CPU time of a new fingerprint in µs."""

    score: JoinScore
    joined: dict[str, str]
    micros: float


def joins_of(
    labels: Iterable[Label],
    events: Mapping[str, GroupingEvent],
    fingerprints: Mapping[str, Fingerprint],
    version: str,
) -> Joins:
    """Compare each fingerprint, at its first event, with the earlier ones of its project that stacks have decided."""
    neighbours: defaultdict[str, Neighbours] = defaultdict(Neighbours)
    first: dict[tuple[str, int], Label] = {}
    joined: dict[str, str] = {}
    counts = dict.fromkeys(((sure, right) for sure in (True, False) for right in (True, False)), 0)
    seconds = 0.0
    for label in sorted(labels, key=lambda label: label.id):
        found = fingerprints[label.id]
        if (label.project, found.hash) in first:
            continue
        first[label.project, found.hash] = label
        if found.rule != "stack":
            continue
        begin = process_time()
        of_project, trace = neighbours[label.project], trace_of(events[label.id], version)
        nearest = None if trace is None else of_project.nearest(trace)
        if trace is not None:
            of_project.add(found.hash, trace)
        seconds += process_time() - begin
        if nearest is None:
            continue
        other = first[label.project, nearest.issue]
        if nearest.likeness >= SURE:
            joined[found.hex] = f"{nearest.issue:016x}"
            of_project.wholes[found.hash] = nearest.issue
        if None not in (label.group, other.group):
            counts[nearest.likeness >= SURE, label.group == other.group] += 1
    score = JoinScore(counts[True, True], counts[True, False], counts[False, True], counts[False, False])
    return Joins(score, joined, 1e6 * seconds / max(1, len(first)))
