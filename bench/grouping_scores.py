"""Scores of a grouping against labels: pairs and B-cubed, overall and by pitfall. No I/O.

Groups are compared within a project only: issues are per project.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct


class Label(Struct, frozen=True, gc=False):
    """The label of an event; a null group is unlabelled.

    `classes` are the pitfalls that it represents, `how` says whether it was found or made, `dataset` where.
    """

    id: str
    project: str
    group: str | None = None
    classes: list[str] | None = None
    klass: list[str] | None = None
    how: str = "made"
    dataset: str = ""

    @property
    def pitfalls(self) -> frozenset[str]:
        """`classes`, by either of its names."""
        return frozenset(self.classes or self.klass or ())


class ClassScore(Struct, frozen=True, rename="camel"):
    """One pitfall: pairs of a group with it, how many of them share an issue, and the number of wrong merges."""

    pairs: int
    recall: float | None
    false_merges: int


class Scores(Struct, frozen=True, rename="camel"):
    """The scores of a grouping; precision measures the absence of wrong merges, recall that of wrong splits."""

    events: int
    groups: int
    issues: int
    pair_precision: float
    pair_recall: float
    pair_f1: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float
    classes: dict[str, ClassScore]


def score(labels: Iterable[Label], grouping: Mapping[str, str]) -> Scores:
    """Score `grouping`, a map from event id to fingerprint; an event without one is its own issue."""
    known = [label for label in labels if label.group is not None]
    truth: defaultdict[tuple[str, str], list[Label]] = defaultdict(list)
    issues: defaultdict[tuple[str, str], list[Label]] = defaultdict(list)
    both: Counter[tuple[str, str, str]] = Counter()
    for label in known:
        group, issue = str(label.group), grouping.get(label.id, f"alone {label.id}")
        truth[label.project, group].append(label)
        issues[label.project, issue].append(label)
        both[label.project, group, issue] += 1
    met = sum(map(_pairs, both.values()))
    precision = ratio(met, sum(_pairs(len(members)) for members in issues.values()))
    recall = ratio(met, sum(_pairs(len(members)) for members in truth.values()))
    sized = [(count, len(issues[p, i]), len(truth[p, g])) for (p, g, i), count in both.items()]
    bcubed_precision = ratio(sum(n * n / size for n, size, _ in sized), len(known))
    bcubed_recall = ratio(sum(n * n / size for n, _, size in sized), len(known))
    return Scores(
        events=len(known),
        groups=len(truth),
        issues=len(issues),
        pair_precision=precision,
        pair_recall=recall,
        pair_f1=_harmonic(precision, recall),
        bcubed_precision=bcubed_precision,
        bcubed_recall=bcubed_recall,
        bcubed_f1=_harmonic(bcubed_precision, bcubed_recall),
        classes=_by_class(list(truth.values()), list(issues.values()), grouping),
    )


def _by_class(
    truth: Sequence[list[Label]], issues: Sequence[list[Label]], grouping: Mapping[str, str]
) -> dict[str, ClassScore]:
    pairs: Counter[str] = Counter()
    met: Counter[str] = Counter()
    strangers: Counter[str] = Counter()
    for members in truth:
        for one, other in combinations(members, 2):
            together = grouping.get(one.id, one.id) == grouping.get(other.id, other.id)
            for pitfall in one.pitfalls | other.pitfalls:
                pairs[pitfall] += 1
                met[pitfall] += together
    for members in issues:
        for one, other in combinations(members, 2):
            if one.group != other.group:
                strangers.update(one.pitfalls | other.pitfalls)
    return {
        name: ClassScore(pairs[name], met[name] / pairs[name] if pairs[name] else None, strangers[name])
        for name in sorted(pairs.keys() | strangers.keys())
    }


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def ratio(part: float, whole: float) -> float:
    """A share; 1 of nothing."""
    return part / whole if whole else 1.0


def _harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one + other else 0.0
