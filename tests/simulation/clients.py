"""Events of clients, and the rows that must be stored of them: from the client's side, without the product's code."""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec
from aiokafka.structs import TopicPartition
from msgspec import Struct

from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, encode_chunk
from schemas.ids import partition_of, project_seed
from schemas.topics import Topic, topic_name
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_tables import Event
from tests.simulation.kafka import Broker, Headers, NewRecord
from tests.simulation.operations import OTHER, PROJECT, RELEASES, SPOILT, USERS
from tests.simulation.packs import pack_of, payloads
from tests.simulation.world import EPOCH, World

SDK: Final = "sdk/1"
FINGERPRINTS: Final = {
    "first": 0x4AD7193A84156FCB,
    "second": 0x2F061811D900A9BB,
    "third": 0xA0C7DF24D433C029,
}
"""Of each kind of events: a fingerprint is for ever."""
TOGETHER: Final = 0x08E5E91BA9CB7E42
"""The fingerprint that a rule of grouping gives."""
_MOMENTS: Final = (
    *("2026-08-24T12:00:00.000Z", "2026-08-24T12:00:00.001Z", "2026-09-21T12:00:00.000Z"),
    *("2026-09-21T11:59:59.999Z", "2026-09-21T12:00:00.000Z", "2026-09-21T03:30:00.000Z"),
)
_HOUR_SECONDS: Final = 3600.0
_FORMAT: Final = ((FORMAT_HEADER, EVENTS_FORMAT),)
_EVENTS: Final = topic_name(Topic.EVENTS, "svc.", {})
_LARGE: Final = 20
"""Percent of the events that are too large, where Kafka takes small records alone."""
MAX_RECORD: Final = 1_500
_Key = tuple[int, bytes]


class NotAsSent(Exception):
    """Something else is stored than a client has sent."""


class Sent(Struct, frozen=True):
    """An event as its client knows it."""

    key: _Key
    """Project and the id's 16 bytes."""
    number: str
    kind: str
    body: bytes
    columns: dict[str, Any]

    @property
    def project(self) -> int:
        """Whose it is."""
        return self.key[0]


class Clients:
    """All events that were sent, by project and id: a client that repeats an id repeats its event."""

    def __init__(self, world: World, *, sends_large: bool) -> None:
        self._world = world
        self._sends_large = sends_large
        self.sent: dict[_Key, Sent] = {}
        self.garbage: set[bytes] = set()
        """Unreadable records of `events`, or with an unreadable event."""

    def of_each_kind(self, random: Random) -> list[Sent]:
        """A new event of each kind, in the project that people work in."""
        return [self._new(random, 10_000.0, PROJECT, kind) for kind in FINGERPRINTS]

    def event(self, random: Random, age: float) -> Sent:
        """A new event, whose id is some seconds old. Two projects may have the same id."""
        project = PROJECT if random.random() < 0.75 else OTHER
        return self._new(random, age, project, random.choice(tuple(FINGERPRINTS)))

    def _new(self, random: Random, age: float, project: int, kind: str) -> Sent:
        others = [key for key in self.sent if key[0] != project and (project, key[1]) not in self.sent]
        if others and random.random() < 0.1:
            number = uuid.UUID(bytes=random.choice(others)[1])
        else:
            number = _uuid7(random, EPOCH + self._world.now - age)
        is_large = self._sends_large and number.int % 100 < _LARGE
        sent = _event(random, project, number, kind, is_large=is_large)
        self.sent[sent.key] = sent
        return sent

    def write_garbage(self, random: Random, broker: Broker) -> None:
        """Write a record to `events` that no edge has written.

        It has no format, is no chunk, or is an event without a payload.
        """
        mark = random.randbytes(16)
        at = int((EPOCH + self._world.now) * 1000)
        value, headers = random.choice(
            (
                (mark, ()),
                (b"\xc1" + mark, _FORMAT),
                (encode_chunk([(PROJECT, mark, at, SDK, SPOILT)]), _FORMAT),
            )
        )
        self._write(broker, random.randrange(self._partitions(broker)), value, headers)

    def spoil(self, random: Random, broker: Broker) -> tuple[Sent, bytes]:
        """An event comes without its payload; returns it as its client sends it again, and the record."""
        sent = self.event(random, 10_000.0)
        at = int((EPOCH + self._world.now) * 1000)
        partition = partition_of(project_seed(sent.project), sent.number, self._partitions(broker))
        value = encode_chunk([(*sent.key, at, SDK, SPOILT)])
        self._write(broker, partition, value, _FORMAT)
        return sent, value

    @staticmethod
    def _partitions(broker: Broker) -> int:
        return len(broker.topics[_EVENTS])

    def _write(self, broker: Broker, partition: int, value: bytes, headers: Headers) -> None:
        self.garbage.add(value)
        at = int((EPOCH + self._world.now) * 1000)
        record = NewRecord(at, None, value, headers)
        broker.produce(TopicPartition(_EVENTS, partition), None, 0, [record])

    def of_user(self, user: str) -> set[bytes]:
        """The ids of a user's events in the project that is erased from."""
        return {
            number
            for (project, number), sent in self.sent.items()
            if project == PROJECT and sent.columns["user_id"] == user
        }


def check_sent(
    server: Server,
    sent: dict[_Key, Sent],
    has_together: Callable[[str], bool],
    retention: Mapping[int, set[tuple[int, int]]],
) -> None:
    """Every stored event is one that was sent, with its bytes and columns, in its group, and for its days.

    `has_together` says whether a rule of `PROJECT` has ever put a kind of events together. `retention` has
    the days that a project's events and payloads have ever had. Raises NotAsSent.
    """
    for name, index in (("events", 0), ("payloads", 1)):
        for row in server.tables[name].rows:
            if row.retention not in {days[index] for days in retention[row.project]}:
                raise NotAsSent(f"{row.id[::-1].hex()} is in {name} for {row.retention} days")
    for row in server.tables["events"].rows:
        event = _of(row, sent)
        for name, value in event.columns.items():
            found = row.column(name)
            if (dict(found) if name == "tags" else found) != value and not _is_untrusted(row, name, value):
                raise NotAsSent(f"{name} of {event.number} is {found!r}, not {value!r}")
        wanted = {FINGERPRINTS[event.kind]}
        if event.project == PROJECT and has_together(event.kind):
            wanted.add(TOGETHER)
        if row.fingerprint not in wanted:
            raise NotAsSent(f"{event.number} of {event.kind} has the fingerprint {row.fingerprint:x}")
    packed, members = payloads(server), dict[tuple[int, int], set[bytes]]()
    for row in server.tables["payloads"].rows:
        pack = pack_of(row)
        members.setdefault((row.project, pack), set()).add(row.id[::-1])
        stored = packed.get((row.project, pack), {}).get(row.id[::-1]) if pack else row.column("payload")
        if stored != _of(row, sent).body:
            raise NotAsSent(f"the payload of {row.id[::-1].hex()} has other bytes")
    for key, content in packed.items():
        if surplus := content.keys() - members[key]:
            raise NotAsSent(f"a pack still has {len(surplus)} events that have no row")


def check_garbage(broker: Broker, garbage: set[bytes]) -> None:
    """Unreadable records are among the dead letters. Raises NotAsSent."""
    [letters] = broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})]
    missing = garbage - {record.value for record in letters.records}
    if missing:
        raise NotAsSent(f"{len(missing)} unreadable records are no dead letters")


def _of(row: Event, sent: dict[_Key, Sent]) -> Sent:
    event = sent.get((row.project, row.id[::-1]))
    if event is None:
        raise NotAsSent(f"no client has sent {row.id[::-1].hex()} of {row.project}")
    return event


def _is_untrusted(row: Event, name: str, value: Any) -> bool:
    """Whether an event has the time of its receipt, because its own is too far from it."""
    if name != "ts":
        return False
    received = row.column("received")
    return bool(row.ts == received and abs((received - value).total_seconds()) > _HOUR_SECONDS)


def _uuid7(random: Random, at: float) -> uuid.UUID:
    number = int(at * 1000) << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62)
    return uuid.UUID(int=number)


def _event(random: Random, project: int, number: uuid.UUID, kind: str, *, is_large: bool) -> Sent:
    user, moment = random.choice(USERS), random.choice(_MOMENTS)
    columns: dict[str, Any] = {"release": "", "environment": "", "platform": ""}
    tags = {}
    if random.random() < 0.8:
        columns = {
            "release": random.choice(RELEASES),
            "environment": random.choice(("live", "test")),
            "platform": random.choice(("web", "ios")),
        }
        tags = {"n": str(random.randrange(100))}
    body = msgspec.json.encode(
        {
            "id": str(number),
            "timestamp": moment,
            **({"context": {"blob": random.randbytes(MAX_RECORD).hex()}} if is_large else {}),
            **({"user": {"id": user}} if user else {}),
            **(
                {**columns, "kind": "error", "device": {"os": "o", "osVersion": "1"}, "tags": tags}
                if tags
                else {}
            ),
            "error": {
                "type": "E",
                "message": kind,
                "stack": [{"file": f"{kind}.py", "function": kind, "line": 1}],
            },
        }
    )
    columns |= {"user_id": user, "tags": tags, "message": kind, "error_type": "E", "sdk": SDK}
    columns["ts"] = datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None)
    return Sent((project, number.bytes), str(number), kind, body, columns)
