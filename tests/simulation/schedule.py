"""One schedule: the product on its models while a plan's entries happen, and the checks once all is settled."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, Final

from aiokafka.structs import TopicPartition
from msgspec.structs import replace

from broker.consumer_lag import readers
from edge.delivery import segments
from schemas.dead_letters import from_headers, replayed_before
from schemas.settings import EdgeSettings
from schemas.topics import Topic, topic_name
from tests.simulation import faults, kafka_clients, operations
from tests.simulation.aims import reached
from tests.simulation.clickhouse import Server
from tests.simulation.clickhouse_shards import Whole, servers_of
from tests.simulation.clients import MAX_RECORD, Clients, Sent, check_garbage, check_sent
from tests.simulation.disk import Disk
from tests.simulation.ends import bad_ends_of, check_ends
from tests.simulation.kafka import Broker, LogRecord
from tests.simulation.operations import Changes, Erasures, Projects
from tests.simulation.pipeline import Edge, Writer, running
from tests.simulation.plan import AIMED, CHANGES, COMMANDS, Entry, Seed, Shape
from tests.simulation.promises import (
    Broken,
    check_changes,
    check_erased,
    check_figures,
    check_issues,
    check_merges,
    check_outcomes,
    check_rollups,
    check_seen,
    check_servers,
    check_stored,
    check_undone,
    dead_events,
    unread,
)
from tests.simulation.statuses import check_statuses
from tests.simulation.worker import Worker
from tests.simulation.world import Process, World

_MAX_LOOKS: Final = 150
_PAYLOAD_DAYS: Final = 60
"""Longer than any event is old."""
_TAKEN: Final = 2
"""Most records in a batch of the grouper, where everything is tiny."""
_RESTART_LOOKS: Final = 70
"""Later than anything that a fault holds up."""
_CHANGE_TRIES: Final = 6
_DAYS_AHEAD: Final = (2, 3, 3, 500)
"""By how many days ids of the future are ahead."""
_ERASE_STEPS: Final = 400
"""About as many as an erasure takes."""
_REBUILD_STEPS: Final = 300


class Schedule:
    """A world with the product in it."""

    def __init__(self, seed: Seed, shape: Shape, entries: Sequence[Entry], folder: Path) -> None:
        self.world = World(seed)
        self.shape = shape
        self.entries = entries
        topics = {
            topic_name(topic, "svc.", {}): 1
            if topic in {Topic.DEAD_LETTERS, Topic.PROJECTS}
            else shape.partitions
            for topic in Topic
        }
        self.broker = Broker(self.world, topics)
        self.network = kafka_clients.Network(self.world, self.broker, shape.clumsy, shape.late)
        self.servers = servers_of(self.world, shape.shards, shape.window)
        self.settings = operations.settings_of(shape.shards)
        self.readers = readers(*operations.GROUPS, shape.shards)
        """The groups, and their topics."""
        self.disk = Disk(self.world, folder)
        self.folder = folder
        if shape.narrow:
            self.broker.max_bytes[topic_name(Topic.EVENTS, "svc.", {})] = MAX_RECORD
        self.projects = Projects(self.world, self.broker, _PAYLOAD_DAYS if shape.short_payloads else None)
        self.clients = Clients(self.world, sends_large=shape.narrow)
        self.changes = Changes(self.world, self.broker)
        self.erasures = Erasures(
            *(self.world, self.broker, self.servers, self.settings.writer),
            *(self.projects.project, self.clients.of_user),
        )
        self.acknowledged: set[tuple[int, bytes]] = set()
        self.processes: dict[str, Process] = {}
        self.waiting: set[str] = set()
        """Requests and commands that are not done."""
        self.are_processors_stopped = False
        self.is_rebuilt = False
        self.healed = False
        self.refused: set[bytes] = set()
        """Ids that ClickHouse has refused."""
        self.expired: dict[int, list[LogRecord]] = {}
        """The removed records of each partition of `issue-activity`."""
        self.logs_expired = False
        self.damaged = False
        """Rows were lost that a repair has not restored yet."""
        self._restarted = False
        self._edge: Edge | None = None
        self.sent: list[list[Sent]] = []
        self.armed: set[str] = set()
        """Places at which a fault strikes the next process."""
        self.reached: Counter[str] = Counter()
        self.ends: list[str] = []
        """Processes that have ended as they may not."""
        self._count = 0

    # Processes.

    def start(self) -> None:
        """Start everything, and let the plan happen."""
        self._start_edge()
        for number in range(self.shape.workers):
            self._start_worker(number)
        for number in range(self.shape.writers):
            self._start_writer(number)
        for entry in self.entries:
            self.world.after(entry.at, partial(self._happen, entry))
        self.world.after(self.shape.seconds + 3.0, self._heal)

    def _start(self, name: str, main: Callable[[], Any], again: Callable[[], None]) -> None:
        def ended(process: Process) -> None:
            self.ends += bad_ends_of(process, logs_expired=self.logs_expired)
            self.world.after(self.world.random.uniform(0.2, 2.0), again)

        self.processes[name] = Process(self.world, name, running(self.world, main), ended)

    def _start_edge(self) -> None:
        settings = EdgeSettings(kafka_bootstrap="k:1")
        edge = self._edge = Edge(self.world, settings, self.folder)
        self._start("edge", edge.run, self._start_edge)

    def worker(self, number: int) -> Worker:
        """A new worker of the processors."""
        settings = replace(self.settings.processors, processors_worker=str(number), processors_bad_limit=0)
        if self.shape.tiny:
            settings = replace(settings, processors_batch_chunks=_TAKEN)
        if self.shape.low:
            settings = replace(settings, dedupe_days=self.shape.days)
        return Worker(self.world, settings, self.shape.partitions, self.projects.registry(), self.reached)

    def _start_worker(self, number: int) -> None:
        name = f"processors-{number}"
        # After a quick rebuild it may have been started already.
        is_running = name in self.processes and self.processes[name].alive
        if not self.are_processors_stopped and not is_running:
            self._start(name, self.worker(number).run, lambda: self._start_worker(number))

    def writer(self, number: int) -> Writer:
        """A new writer."""
        return Writer(replace(self.settings.writer, writer_worker=str(number)))

    def _start_writer(self, number: int) -> None:
        self._start(f"writer-{number}", self.writer(number).run, lambda: self._start_writer(number))

    def _command(
        self, name: str, main: Callable[[], Any], *, is_async: bool, fatal_in: int | None = None
    ) -> None:
        """Run a command until it succeeds: one that fails or is killed is given again, as its message asks for."""
        self._count += 1
        name = f"{name}-{self._count}"
        self.waiting.add(name)

        def again() -> None:
            run = running(self.world, main) if is_async else main
            process = Process(self.world, name, run, ended)
            if not self.healed:
                self.processes[name] = process
            process.fatal_in = fatal_in

        def ended(process: Process) -> None:
            nonlocal fatal_in
            fatal_in = process.fatal_in
            self.processes.pop(name, None)
            if process.alive or process.error is not None or process.was_killed:
                self.world.after(0.5, again)
            else:
                self.waiting.discard(name)

        again()

    # Entries of a plan.

    def _happen(self, entry: Entry) -> None:
        random = Random(entry.seed)
        if entry.what == "post":
            self.post_new(random)
        elif entry.what == "all":
            self._send(self.clients.of_each_kind(random))
        elif entry.what == "ahead":
            self._send([self.clients.event(random, -86_400.0 * random.choice(_DAYS_AHEAD))])
        elif entry.what == "again":
            for events in self.sent:
                self.post(events)
        elif entry.what in AIMED:
            self.armed.add(entry.what)
        elif entry.what in CHANGES:
            self._change(entry.what, random, _CHANGE_TRIES)
        elif entry.what in COMMANDS:
            self._give(entry.what, random)
        else:
            faults.cause(self, entry.what, random)

    def _give(self, command: str, random: Random) -> None:
        match command:
            case "change":
                self._change("", random, 0)
            case "project":
                self.projects.change(random)
            case "repair":
                self._command("repair", partial(operations.repair, self.settings.writer), is_async=False)
            case "erase":
                erase = self.erasures.one(random)
                fatal_in = random.randint(1, _ERASE_STEPS) if random.random() < 0.5 else None
                if erase is not None:
                    self._command("erase", erase, is_async=False, fatal_in=fatal_in)
            case "rebuild" if not (self.shape.late or self.are_processors_stopped):
                self._rebuild(random)
            case "replay":
                if self.shape.is_repaired:
                    self.refuse_nothing()
                replay = partial(operations.replay_dead_letters, self.settings.writer)
                self._command("replay", replay, is_async=True)

    def _change(self, wanted: str, random: Random, tries: int) -> None:
        """A user's change, as soon as there is an issue for it."""
        if wanted == "cross":
            changes = self.changes.cross(random)
        else:
            changes = [change for change in (self.changes.one(random, wanted),) if change is not None]
        for change in changes:
            self._command("change", change, is_async=True)
        if not changes and tries and not self.healed:
            self.world.after(0.5, lambda: self._change(wanted, random, tries - 1))

    def _rebuild(self, random: Random) -> None:
        """Stop the processors, rebuild, and start them again.

        Left out are effects of their late requests, and a rebuild from a ClickHouse that has lost parts or
        refused rows.
        """
        if any(entry.what in {"part", "refusal", "refusals"} for entry in self.entries):
            return
        # From the topics, versions would begin again.
        sources = ("clickhouse",) if self.is_rebuilt else (None, "clickhouse")
        self.are_processors_stopped = self.is_rebuilt = True
        for process in self.world.processes:
            if process.name.startswith("processors-"):
                process.kill()
        tables = random.choice((("issues",), ("seen",), ("issues", "seen")))
        source = random.choice(sources)
        self.world.note(f"{' and '.join(tables)} are rebuilt from {source or 'the complete one'}")

        async def main() -> None:
            if not self.are_processors_stopped:
                return  # It was killed after its end.
            await operations.rebuild(self.settings.processors, tables, source)
            self.are_processors_stopped = False
            for number in range(self.shape.workers):
                self._start_worker(number)

        fatal_in = random.randint(1, _REBUILD_STEPS) if random.random() < 0.5 else None
        self._command("rebuild", main, is_async=True, fatal_in=fatal_in)

    # Clients.

    def post_new(self, random: Random) -> None:
        """A client sends some new events."""
        events = []
        for _ in range(random.choice((1, 1, 2, 5))):
            # Some ids are older than the dedup window, and looked up.
            age = 40 * 86_400.0 if self._count % 4 == 3 else 10_000.0
            events.append(self.clients.event(random, age))
        # A request is for one project.
        events = [event for event in events if event.project == events[0].project]
        self._send(events)
        if random.random() < 0.2:
            # A client that repeats accepted events.
            self.world.after(random.uniform(0.0, 5.0), lambda: self.post(events))

    def _send(self, events: list[Sent]) -> None:
        self.sent.append(events)
        self.post(events)

    def post(self, events: list[Sent]) -> None:
        """A client sends events until they are accepted."""
        self._count += 1
        name = f"post-{self._count}"
        self.waiting.add(name)

        def try_once() -> None:
            answers: list[bool] = []

            def answered(accepted: bool) -> None:
                if answers:
                    return
                answers.append(accepted)
                if accepted:
                    self.acknowledged.update(event.key for event in events)
                    self.waiting.discard(name)
                else:
                    self.world.after(1.0, try_once)

            self.world.after(10.0, lambda: answered(False))
            assert self._edge is not None
            bodies = [(event.number, event.body) for event in events]
            self._edge.post(self.projects.of(events[0].project), bodies, answered)

        try_once()

    # The end.

    def _heal(self) -> None:
        self.healed = True
        self.armed.clear()
        self.network.clumsy = 0.0
        self.disk.free()
        for process in self.world.processes:
            process.fatal_in = process.freeze_in = None
        if self.shape.is_repaired:
            self.refuse_nothing()
        self._look(0)

    def _look(self, looks: int) -> None:
        unsettled = self._unsettled()
        is_due = looks > _RESTART_LOOKS if unsettled else self.shape.late or unread(self.broker)
        if is_due and not self._restarted:
            # A late write, or a commit of an older state, shows only to the next owner; a compaction may leave
            # such a write alone.
            self._restarted = True
            for name, process in self.processes.items():
                if name.startswith(("processors", "writer")):
                    self.world.after(self.shape.late, process.kill)
            self.world.after(self.shape.late + 2.5, lambda: self._look(looks + 1))
            return
        self.world.is_over = not unsettled
        if unsettled:
            if looks > _MAX_LOOKS:
                raise Broken(f"it does not settle: {unsettled}")
            self.world.after(1.0 if looks < 30 else 5.0, lambda: self._look(looks + 1))

    def _unsettled(self) -> str:
        """The unfinished work."""
        if self.waiting:
            return f"{', '.join(sorted(self.waiting))} are not done"
        if not self.broker.is_up or not all(server.is_up for server in self.servers):
            return "a server is down"
        if any(process.is_frozen for process in self.world.processes if process.alive):
            return "a process is frozen"
        if self.shape.is_repaired and self._has_dead_events():
            self._give("replay", Random(0))
            return "dead letters are not replayed"
        if any(segments.is_name(path.name) for path in self.folder.iterdir()):
            return "the spool is not empty"
        # After a rebuild, or where `seen` was lost and the processors read it again, the commits are no news.
        is_read_again = self.is_rebuilt or self._restarted
        return self._behind() or (is_read_again and unread(self.broker)) or self._unrepaired()

    def _behind(self) -> str:
        """A group that has not read all."""
        for group, topics in self.readers.items():
            offsets = self.broker.group(group).offsets
            for topic in topics:
                for log in self.broker.topics[topic_name(topic, "svc.", {})]:
                    commit = offsets.get(TopicPartition(log.topic, log.partition))
                    # Without a commit, all that has not expired is to be read.
                    if log.end > (commit.offset if commit else log.start):
                        return f"{group} is behind on {log.topic}/{log.partition}: {commit} of {log.end}"
        return ""

    def _unrepaired(self) -> str:
        """Rows that were lost: a repair is given."""
        if not self.damaged:
            return ""
        self.damaged = False
        self._give("repair", Random(0))
        return "lost rows are not restored"

    def _has_dead_events(self) -> bool:
        """Whether events are among the dead letters that were not replayed; refused changes stay there."""
        [log] = self.broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})]
        replayed = max((replayed_before(record.headers) or 0 for record in log.records), default=0)
        return any(
            from_headers(record.headers)[0].stage == "writer"
            for record in log.records[replayed:]
            if replayed_before(record.headers) is None
        )

    def whole(self) -> Server:
        """The stored rows, on all servers."""
        return self.servers[0] if len(self.servers) == 1 else Whole(self.servers, 0).now()

    def a_server(self, random: Random) -> Server:
        """One of the servers."""
        return self.servers[0] if len(self.servers) == 1 else random.choice(self.servers)

    def refuse_nothing(self) -> None:
        """From now on the servers take each row."""
        for server in self.servers:
            server.refused.clear()

    def check(self) -> None:
        """Raise Broken where a promise does not hold."""
        check_ends(self.ends)
        check_servers(self.servers, self.shape.partitions)
        server = self.whole()
        dead = dead_events(self.broker, server)
        self.disk.check_quarantine(p for p in self.world.processes if p.name == "edge")
        stored = check_stored(server, self.acknowledged, self.disk.quarantined(), dead)
        check_sent(server, self.clients.sent, self.projects.has_matched, self.projects.retention)
        check_garbage(self.broker, self.clients.garbage)
        check_rollups(server)
        check_issues(server, self.changes, dead, is_rebuilt=self.is_rebuilt)
        check_figures(server, self.broker, self.changes, self.expired, dead)
        check_merges(self.changes)
        check_undone(server)
        if not self.disk.flipped:
            check_outcomes(server, stored)
        check_seen(self.broker)
        check_statuses(server, self.broker, self.changes, is_rebuilt=self.is_rebuilt)
        check_changes(server, self.broker, self.changes, is_rebuilt=self.is_rebuilt)
        check_erased(server, self.changes, self.erasures, self.refused)
        self.reached = reached(self)
        off = self._off(has_dead=bool(dead) or bool(server.erasing.totals()))
        self.reached.update(" and ".join(some) for n in (1, 2) for some in combinations(off, n))

    def _off(self, *, has_dead: bool) -> list[str]:
        """The promises that were not checked."""
        deltas = self.broker.topics[topic_name(Topic.ISSUE_DELTAS, "svc.", {})]
        return [
            f"no {promise}"
            for promise, is_off in {
                "outcomes": bool(self.disk.flipped),
                "statuses": self.is_rebuilt or any(log.start for log in deltas),
                "effects of commands": self.is_rebuilt,
                "figures of some issues": has_dead,
            }.items()
            if is_off
        ]
