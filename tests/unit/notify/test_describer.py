"""The texts of messages: from the newest records of issues, else from ClickHouse."""

import asyncio
import json
from typing import Any

from msgspec.structs import replace

from notify.describer import Describer, clock_ms
from notify.issue_tail import ENTRY_BYTES, IssueTail
from notify.notification_fold import Outgoing
from notify.rule_queue import RuleDecision
from schemas.issues import IssueRecord, encode_json
from schemas.notifications import CAUSES, NotificationRule
from schemas.projects import ProjectRegistry
from schemas.read_api import ArtifactLink
from schemas.times import HOUR_MS
from sourcemaps.positions import Content, packed
from sourcemaps.resolver import Resolver
from storage.errors import NotFound, ReadError, StorageUnavailable
from storage.read.artifacts import FindArtifacts, GetArtifact, GetLastPayloads, HasArtifacts
from storage.read.reader import A, ReadCall, Reader
from tests.builds import VITE
from tests.unit.notify.histories import START, cause

NUMBER = f"{1:016x}"
NOW = clock_ms()
RECORD = IssueRecord(
    id=NUMBER,
    project_id="1",
    fingerprints=(NUMBER,),
    error_type="KeyError",
    message="no cart",
    culprit="pay in cart.py",
    first_seen_ms=NOW,
    last_seen_ms=NOW,
    events=7,
    users=2,
    hours={NOW // HOUR_MS: 3, NOW // HOUR_MS - 30: 4},
)
OUTGOING = Outgoing(
    RuleDecision(NotificationRule("a" * 16, "all", CAUSES, ("hook",)), (cause(1),), START), "hook"
)


class ClickHouse(Reader):
    """Raises the error; without one it never answers."""

    def __init__(self, error: ReadError | None = None) -> None:
        self.questions = 0
        self._error = error

    async def read(self, _call: Any) -> Any:
        self.questions += 1
        if self._error is None:
            await asyncio.Event().wait()
        raise self._error or AssertionError


async def issue_of_message(tail: IssueTail, reader: Reader | None, seconds: float = 60) -> dict[str, Any]:
    message = await Describer(tail, reader, ProjectRegistry(), "", seconds).write(OUTGOING)
    found: dict[str, Any] = message.data["causes"][0]["issue"]
    return found


def tail_of(*records: IssueRecord) -> IssueTail:
    tail = IssueTail()
    for record in records:
        tail.apply(record.id.encode(), encode_json(record))
    return tail


async def test_a_message_has_the_texts_of_the_record_and_asks_nothing_else() -> None:
    clickhouse = ClickHouse()
    issue = await issue_of_message(tail_of(RECORD), clickhouse)
    assert (issue["errorType"], issue["message"], issue["culprit"]) == (
        "KeyError",
        "no cart",
        "pay in cart.py",
    )
    assert (issue["totalEvents"], issue["totalUsers"], issue["status"]) == (7, 2, "open")
    assert clickhouse.questions == 0


async def test_a_record_that_comes_after_its_cause_is_awaited_whatever_clickhouse_does() -> None:
    for reader in (None, ClickHouse(), ClickHouse(StorageUnavailable("down")), ClickHouse(NotFound("none"))):
        tail = IssueTail()
        waiting = asyncio.create_task(issue_of_message(tail, reader))
        await asyncio.sleep(0)
        tail.apply(NUMBER.encode(), encode_json(RECORD))
        assert (await waiting)["message"] == "no cart"


async def test_without_any_answer_a_message_leaves_with_the_counts_of_its_cause() -> None:
    issue = await issue_of_message(IssueTail(), ClickHouse(), seconds=0.01)
    assert (issue["message"], issue["totalEvents"]) == ("", OUTGOING.decision.causes[0].subject.events)


class MappedProject(Reader):
    """Has a map and the event of the issue, which is stored a moment after its record."""

    def __init__(self) -> None:
        content = packed(Content(VITE[0].map, VITE[0].script))
        link = ArtifactLink(VITE[0].release, VITE[0].file, "sourceMap", "d")
        event = json.dumps(VITE[0].event(1, NOW)).encode()
        self._answers: dict[type[ReadCall[Any]], list[Any]] = {
            HasArtifacts: [True],
            GetLastPayloads: [{}, {NUMBER: event}],
            FindArtifacts: [[link]],
            GetArtifact: [content],
        }

    async def read(self, call: ReadCall[A]) -> A:
        """The next answer."""
        answer: A = self._answers[type(call)].pop(0)
        return answer


async def test_a_message_names_the_original_source_of_its_event() -> None:
    resolver = Resolver(MappedProject())
    tail = tail_of(replace(RECORD, platforms={"javascript": 7}))
    describer = Describer(tail, None, ProjectRegistry(), "", 60, resolver)
    message = await describer.write(OUTGOING)
    await resolver.close()
    issue = message.data["causes"][0]["issue"]
    assert (issue["culprit"], issue["source"]) == ("totalOf in src/cart.ts:9", "total += item.price!.cents;")
    assert "source: total += item" in message.body


def test_the_trend_has_the_hours_of_the_last_day() -> None:
    issue = tail_of(RECORD).find(NUMBER, NOW)
    assert issue is not None
    assert (len(issue.trend), sum(issue.trend), issue.trend[-1]) == (24, 3, 3)


def test_a_later_record_replaces_texts_and_a_tombstone_or_a_merge_removes_them() -> None:
    tail = tail_of(RECORD, replace(RECORD, message="", culprit=""))
    redacted = tail.find(NUMBER, NOW)
    assert redacted is not None
    assert redacted.message == ""
    tail.apply(NUMBER.encode(), None)
    assert tail.find(NUMBER, NOW) is None
    assert tail_of(RECORD, replace(RECORD, merged_into="00000000000000ff")).find(NUMBER, NOW) is None


def test_the_issues_that_changed_longest_ago_are_dropped_first() -> None:
    value = encode_json(RECORD)
    tail = IssueTail(2 * (ENTRY_BYTES + len(value)))
    for key in (b"a", b"b", b"a", b"c", b"c"):
        tail.apply(key, value)
    assert [tail.find(key, NOW) is not None for key in "abc"] == [True, False, True]
    tail.apply(b"d", value * 3)
    assert not any(tail.find(key, NOW) for key in "abcd")
