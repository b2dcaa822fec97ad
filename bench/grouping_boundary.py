"""Boundary pairs: where grouping decides otherwise than plain likeness would. No I/O.

Most pairs of events are easy: alike and one problem, or unlike and two. A *boundary pair* is of one project, and either its fingerprints
differ though the errors are alike, or they are the same though the errors are unlike. Of these, precision is the share of joined ones that
are one problem, and recall the share of those that are one problem which are joined.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Final

from msgspec import Struct

from bench.grouping_scores import Label, ratio
from grouping.fingerprint.event_view import GroupingError, GroupingEvent

NEAR: Final = 0.6
FAR: Final = 0.4
"""Shares of words that two errors have in common, of all their words: above and below these they are alike and unlike."""
_FRAMES: Final = 10
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


class BoundaryScore(Struct, frozen=True, rename="camel"):
    """The number of boundary pairs, and of them precision and recall."""

    pairs: int
    precision: float
    recall: float


def words_of(event: GroupingEvent) -> frozenset[str]:
    """The words of an event's types and messages, and of the tops of its stacks: no numbers."""
    words: set[str] = set()
    error: GroupingError | None = event.error
    while error is not None:
        words.update(_WORD.findall(f"{error.type} {error.message}"))
        for frame in (error.stack or ())[:_FRAMES]:
            words.update((f"at {frame.function}", f"in {frame.file}"))
        error = error.cause
    return frozenset(words)


def score_boundary(
    labels: Iterable[Label], events: Mapping[str, GroupingEvent], grouping: Mapping[str, str]
) -> BoundaryScore:
    """Score the boundary pairs. Events of one issue, problem and set of words count once."""
    projects: defaultdict[str, set[tuple[str, str, frozenset[str]]]] = defaultdict(set)
    for label in labels:
        if label.group is not None:
            projects[label.project].add((label.group, grouping[label.id], words_of(events[label.id])))
    joined_right = joined_wrong = parted_wrong = pairs = 0
    for members in projects.values():
        for (one, issue, words), (other, its_issue, its_words) in combinations(members, 2):
            likeness = ratio(len(words & its_words), len(words | its_words))
            if issue == its_issue and likeness <= FAR:
                joined_right += one == other
                joined_wrong += one != other
            elif issue != its_issue and likeness >= NEAR:
                parted_wrong += one == other
            else:
                continue
            pairs += 1
    return BoundaryScore(
        pairs,
        ratio(joined_right, joined_right + joined_wrong),
        ratio(joined_right, joined_right + parted_wrong),
    )
