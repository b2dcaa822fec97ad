"""A history of a project."""

import random
from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from query.event_view import IssueView
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Activity, Outcome
from schemas.read_api import GroupingOf
from schemas.times import HOUR_MS, iso, parse_iso
from tests.integration.dashboard.store import Store, record
from tests.unit.dashboard.sample import Sent, showcase

NOW_MS = 1_790_003_723_456
SDKS = ("javascript/1.4.0", "react-native/0.9.1")
MERGED = {108: 105}
"""Fingerprints whose events belong to the issue of another one."""
WHY = GroupingOf("1", "stack", ["Error", "run in src/a.js"])
MERGED_WHY = GroupingOf("1", "stack", ["Error", "walk in src/b.js"])


class History:
    """Events of a project, oldest first, each with its fingerprint and time of receipt."""

    def __init__(self, project: int, seed: int = 5, many: int = 160) -> None:
        self.project = project
        chance = random.Random(seed)
        ages = sorted((int(13 * 24 * HOUR_MS * chance.random() ** 2) for _ in range(many)), reverse=True)
        self.events = [
            (self._event(chance, NOW_MS - 1_000 - age), 100 + int(12 * chance.random() ** 2)) for age in ages
        ]

    def _event(self, chance: random.Random, at: int) -> dict[str, Any]:
        event = showcase(at) | {
            "id": str(uuid7(at)),
            "environment": chance.choice(["prod", "prod", "staging"]),
            "release": f"shop@1.{chance.randrange(3)}.0+{chance.randrange(9)}",
            "tags": {
                "tier": chance.choice(["free", "pro"]),
                "n": str(chance.randrange(12)),
                "it's": 'a"b\\c',
            },
            "user": chance.choice([None, *({"id": f"u{n}"} for n in range(12))]),
        }
        kind = chance.choice(["TypeError", "RangeError"])
        event["error"] = event["error"] | {"type": kind, "message": f"Can't read größe {chance.randrange(9)}"}
        return event

    @property
    def damaged(self) -> str:
        """The id of an event whose stored content can't be read; its issue has others before and after it."""
        life = next(life for fingerprint, life in self.lives().items() if fingerprint > 102 and len(life) > 4)
        return str(life[2]["id"])

    def lives(self) -> dict[int, list[dict[str, Any]]]:
        """Events of each issue, by the fingerprint that opened it."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for event, fingerprint in self.events:
            found[MERGED.get(fingerprint, fingerprint)].append(event)
        return found

    def issue(self, fingerprint: int) -> int:
        """The issue that a fingerprint opened."""
        return issue_id(self.project, fingerprint)

    @property
    def fingerprints(self) -> list[int]:
        """All of them, merged ones too."""
        return sorted({fingerprint for _, fingerprint in self.events})

    def state(self, fingerprint: int) -> IssueView:
        """A state that follows from the fingerprint."""
        return IssueView(
            status=("open", "resolved", "ignored")[fingerprint % 3],
            regressed=fingerprint % 5 == 0,
            assignee=("zoe", "", "bob@x", "")[fingerprint % 4],
        )

    def outcomes(self) -> list[Outcome]:
        """Counts at several minutes."""
        kinds: tuple[tuple[Any, str, int], ...] = (
            ("accepted", "", 40),
            ("duplicate", "", 3),
            ("invalid", "release", 2),
        )
        return [
            Outcome(
                str(self.project),
                iso((NOW_MS - hours * HOUR_MS) // 60_000 * 60_000),
                sdk,
                outcome,
                reason,
                count,
                "edge-0",
                n,
            )
            for n, hours in enumerate((0, 1, 1, 30, 200))
            for sdk in SDKS
            for outcome, reason, count in kinds
        ]

    def activity(self, fingerprint: int) -> list[Activity]:
        """A short life of an issue."""
        kinds: tuple[Any, ...] = ("created", "resolved", "regressed")
        parts = [hex64(part) for part, whole in MERGED.items() if whole == fingerprint]
        kinds += ("merged",) if parts else ()
        release = next(event["release"] for event, number in self.events if number == fingerprint)
        return [
            Activity(
                id=f"{kind}-{fingerprint}",
                issue=hex64(self.issue(fingerprint)),
                project_id=str(self.project),
                kind=kind,
                by="admin",
                at=iso(NOW_MS - (50 - number) * HOUR_MS),
                data={"fingerprints": parts} if kind == "merged" else {"release": release},
            )
            for number, kind in enumerate(kinds)
        ]


def why(fingerprint: int) -> GroupingOf:
    """The grouping of the events of a fingerprint."""
    return MERGED_WHY if fingerprint in MERGED else WHY


def fill(history: History, store: Store) -> None:
    """The history in the tables."""
    sent = [
        Sent(
            event, fingerprint, SDKS[number % 2], parse_iso(event["timestamp"]) + 700, why(fingerprint).parts
        )
        for number, (event, fingerprint) in enumerate(history.events)
    ]
    store.add(history.project, sent)
    store.damage(history.damaged)
    for fingerprint in history.fingerprints:
        whole, state = MERGED.get(fingerprint, fingerprint), history.state(fingerprint)
        known = record(
            history.project, [one for one in sent if MERGED.get(one.fingerprint, one.fingerprint) == whole]
        )
        parts = (fingerprint, *(part for part, other in MERGED.items() if other == fingerprint))
        changed = replace(
            known,
            id=hex64(history.issue(fingerprint)),
            fingerprints=tuple(map(hex64, parts)),
            status=state.status,
            regressed=state.regressed,
            assignee=state.assignee or None,
            grouping_parts=tuple(why(fingerprint).parts),
            merged_into=None if whole == fingerprint else hex64(history.issue(whole)),
            version=2,
        )
        store.put([changed])
        store.tell(history.activity(fingerprint))
    store.count(history.outcomes())
