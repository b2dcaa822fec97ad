"""What grouping learns of the projects of labelled events (`grouping.learning`), and how it groups with that."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.grouping_scores import Label
from grouping.fingerprint import VERSIONS, GroupingEvent, fingerprint
from grouping.fingerprint.learnt import with_learnt
from grouping.learning import helpers, seen_in, telling, varying
from schemas.projects import LearntFact


class ProjectFacts(NamedTuple):
    """The facts by project, and the fingerprint of each event with them."""

    by_project: dict[str, list[LearntFact]]
    grouping: dict[str, str]


def learn_all(labels: Sequence[Label], events: Mapping[str, GroupingEvent], version: str) -> ProjectFacts:
    """As if all events of a project had come before the facts."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for label in labels:
        members[label.project].append(label.id)
    found = ProjectFacts({}, {})
    mechanism = VERSIONS[version]
    for project, ids in members.items():
        seen = [seen_in(events[event], mechanism) for event in ids]
        messages = [message for _, message in seen if message is not None]
        facts = [
            *helpers(frame for frame, _ in seen if frame is not None),
            *varying(messages),
            *telling(messages),
        ]
        if facts:
            found.by_project[project] = facts
        by = with_learnt(mechanism, facts)
        found.grouping.update({event: fingerprint(events[event], version=by).hex for event in ids})
    return found
