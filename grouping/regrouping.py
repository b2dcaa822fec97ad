"""How the issues of a project change when its events are grouped otherwise: which stay, join and split. Pure.

Each issue is continued by the new fingerprint that most of its events get. Issues that are continued by one fingerprint join. What else an
issue holds splits off: new events like it open issues of their own. Events of the past stay where they were counted, so nothing is
counted again, and what was done can be undone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from schemas.ids import issue_id

MAX_FINGERPRINTS: Final = 101
"""Of one issue, its own and those that were merged into it."""

Counts = Mapping[tuple[int, int], int]
"""Events by their present issue and their new fingerprint."""


class Known(NamedTuple):
    """The present issues: the issue of each fingerprint, and how many fingerprints an issue has."""

    issue_of: Mapping[int, int]
    sizes: Mapping[int, int]

    @staticmethod
    def of(issues: Iterable[tuple[int, Iterable[int]]]) -> "Known":
        """From issues and their fingerprints."""
        fingerprints = {issue: tuple(of_issue) for issue, of_issue in issues}
        return Known(
            {one: issue for issue, of_issue in fingerprints.items() for one in of_issue},
            {issue: len(of_issue) for issue, of_issue in fingerprints.items()},
        )


class Gathering(NamedTuple):
    """What is merged into an issue: other issues, and new fingerprints."""

    issue: int
    issues: tuple[int, ...]
    fingerprints: tuple[int, ...]


class SplitOff(NamedTuple):
    """Events whose like go from an issue to another from now on; `is_new` for one that doesn't exist yet."""

    issue: int
    into: int
    events: int
    is_new: bool


class RegroupPlan(NamedTuple):
    """What is merged, and what follows for events like the counted ones."""

    gatherings: list[Gathering]
    issue_of: dict[int, int]
    """The issue of each new fingerprint afterwards."""
    joined: dict[int, int]
    """Issues that join another, and which."""
    splits: list[SplitOff]
    """What splits off, by issue."""


def plan(project: int, counts: Counts, known: Known) -> RegroupPlan:
    """What is to be merged for these events. Of new fingerprints that no issue has, the plan after a part was done is the rest of it."""
    events = Counter[int]()
    of_issue: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (issue, fingerprint), count in counts.items():
        events[issue] += count
        of_issue[issue].append((count, fingerprint))
    continued: defaultdict[int, list[int]] = defaultdict(list)
    for issue, shares in of_issue.items():
        continued[max(shares)[1]].append(issue)
    # An issue that has a fingerprint already is where others join; it joins none itself, so that no chain merges what is unlike.
    fixed = {known.issue_of[fingerprint] for fingerprint in continued if fingerprint in known.issue_of}
    gatherings: dict[int, Gathering] = {}
    issue_of, joined = dict[int, int](), dict[int, int]()
    for fingerprint, issues in sorted(continued.items()):
        owner = known.issue_of.get(fingerprint)
        issues.sort(key=lambda issue: (-events[issue], issue))
        target = owner if owner is not None else issues[0]
        before = gatherings.get(target, Gathering(target, (), ()))
        room = MAX_FINGERPRINTS - known.sizes.get(target, 1) - _size(before, known)
        added = () if owner is not None else (fingerprint,)
        if room < len(added):
            continue
        room -= len(added)
        joining = []
        for issue in issues:
            if issue != target and issue not in fixed and known.sizes.get(issue, 1) <= room:
                joining.append(issue)
                room -= known.sizes.get(issue, 1)
        issue_of[fingerprint] = target
        joined |= dict.fromkeys(joining, target)
        if joining or added:
            gatherings[target] = Gathering(target, (*before.issues, *joining), (*before.fingerprints, *added))
    for _, fingerprint in counts:
        if fingerprint not in issue_of:
            owner = known.issue_of.get(fingerprint, issue_id(project, fingerprint))
            issue_of[fingerprint] = joined.get(owner, owner)
    return RegroupPlan(list(gatherings.values()), issue_of, joined, _splits(counts, issue_of, joined, known))


def _size(gathering: Gathering, known: Known) -> int:
    return len(gathering.fingerprints) + sum(known.sizes.get(issue, 1) for issue in gathering.issues)


def _splits(
    counts: Counts, issue_of: Mapping[int, int], joined: Mapping[int, int], known: Known
) -> list[SplitOff]:
    parts = Counter[tuple[int, int]]()
    for (issue, fingerprint), count in counts.items():
        into = issue_of[fingerprint]
        if into != joined.get(issue, issue):
            parts[issue, into] += count
    return [
        SplitOff(issue, into, count, into not in known.sizes)
        for (issue, into), count in sorted(parts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    ]
