"""Faults of processes, their connections, the machine, and the servers."""

from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from aiokafka.structs import TopicPartition

from schemas.topics import Topic, topic_name
from storage.exactly_once.block_plan import NoBlock, decode_plan
from tests.simulation.clients import Sent
from tests.simulation.pipeline import running
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_TABLES = (Topic.SEEN, Topic.ISSUES, Topic.PROJECTS)
_PASSING = 3


def cause(schedule: "Schedule", fault: str, random: Random) -> None:
    """Let a fault happen."""
    if fault in {"kill", "step", "freeze", "cut"}:
        _hit(schedule.processes[random.choice(sorted(schedule.processes))], fault, random)
    elif fault == "sleep":
        _sleep(schedule, random)
    elif fault in {"clock", "full", "power", "bit"}:
        _hit_machine(schedule, fault, random)
    else:
        _hit_servers(schedule, fault, random)


def _hit(process: Process, fault: str, random: Random) -> None:
    match fault:
        case "kill":
            process.kill()
        case "step":
            process.fatal_in = random.randint(1, 60)
        case "freeze":
            process.freeze_in = random.randint(1, 60), random.choice((0.5, 5.0, 20.0, 40.0))
        case "cut":
            seconds = random.choice((0.5, 5.0, 20.0, 40.0))
            process.world.note(f"{process.name} is cut off for {seconds:.1f} s")
            process.silent(seconds)


def _sleep(schedule: "Schedule", random: Random) -> None:
    name = random.choice(sorted(name for name in schedule.processes if name.startswith("processors-")))
    sleep(schedule.processes[name], random)


def sleep(process: Process, random: Random, steps: int = 60) -> None:
    """The machine of a worker sleeps for longer than a session, and no clock of the worker shows it."""
    process.has_slept = True
    process.freeze_in = random.randint(1, steps), random.choice((20.0, 40.0))


def _hit_machine(schedule: "Schedule", fault: str, random: Random) -> None:
    match fault:
        case "clock":
            schedule.world.machine_skew += random.choice((-86_400.0, -60.0, -1.0, 1.0, 60.0, 86_400.0))
            schedule.world.note(f"the machine's clock is {schedule.world.machine_skew:+.0f} s off")
        case "full":
            schedule.disk.fill(random.choice((0.5, 3.0)))
        case "power":
            schedule.processes["edge"].kill()
            schedule.disk.lose_power()
        case "bit":
            schedule.disk.flip_bit()


def _hit_servers(schedule: "Schedule", fault: str, random: Random) -> None:  # noqa: PLR0912 - a list
    match fault:
        case "broker" if schedule.broker.is_up:
            schedule.broker.crash(random.choice((0.5, 3.0, 15.0)))
        case "clickhouse":
            server = schedule.a_server(random)
            if server.is_up:
                server.crash(random.choice((0.5, 3.0, 15.0)))
        case "slow":
            schedule.a_server(random).freeze(random.choice((1.0, 10.0, 130.0)))
        case "lag":
            schedule.a_server(random).slow_down(random.choice((0.1, 1.0, 4.0)), random.choice((3.0, 20.0)))
        case "twin":
            _add_twin(schedule, random)
        case "part":
            _lose_part(schedule, random)
        case "compaction":
            _compact(schedule, random)
        case "retention":
            _expire(schedule, random)
        case "lost":
            _lose_table(schedule, random)
        case "days":
            _pass_days(schedule, random)
        case "lost seen":
            lose(schedule, Topic.SEEN)
        case "lost issues":
            lose(schedule, Topic.ISSUES)
        case "lost part":
            lose(schedule, Topic.SEEN, random.random())
        case "kill processors" | "kill writers":
            _kill_all(schedule, fault.removeprefix("kill "))
        case "reset":
            _reset(schedule)
        case "rules":
            schedule.projects.toggle_rule()
        case "garbage":
            schedule.clients.write_garbage(random, schedule.broker)
        case "spoilt":
            _send_again(schedule, *schedule.clients.spoil(random, schedule.broker))
        case "twice":
            _add_twice(schedule, random)
        case "refusal" | "refusals":
            many = 1 if fault == "refusal" else 5
            ids = [event.key[1] for events in schedule.sent[-1:] for event in events[:many]]
            schedule.refused.update(ids)
            for server in schedule.servers:
                server.refused.update(number[::-1] for number in ids)


def _send_again(schedule: "Schedule", event: Sent, spoilt: bytes) -> None:
    """A client sends an event again whose first copy was unreadable, once that one is a dead letter."""
    [letters] = schedule.broker.topics[topic_name(Topic.DEAD_LETTERS, "svc.", {})]
    if any(record.value == spoilt for record in letters.records):
        schedule.post([event])
    else:
        schedule.world.after(0.3, lambda: _send_again(schedule, event, spoilt))


def _lose_part(schedule: "Schedule", random: Random) -> None:
    """As soon as there is one."""
    if schedule.a_server(random).lose_part(random):
        schedule.damaged = True
    elif not schedule.healed:
        schedule.world.after(0.5, lambda: _lose_part(schedule, random))


def _add_twice(schedule: "Schedule", random: Random) -> None:
    """A block is inserted again under another token, as by an operator who restores a part; a repair follows.

    Not while others would count its events, or have lost some of them.
    """
    kinds = {entry.what for entry in schedule.entries}
    if kinds & {"erase", "rebuild", "days", "part", "refusal", "refusals"} or schedule.healed:
        return
    if schedule.a_server(random).insert_again(random):
        schedule.damaged = True


def _add_twin(schedule: "Schedule", random: Random) -> None:
    """A second process under the name of another, for a while."""
    kinds = ("writer-", "processors-") if not schedule.are_processors_stopped else ("writer-",)
    names = [name for name in schedule.processes if name.startswith(kinds)]
    name = random.choice(sorted(names))
    kind, _, number = name.partition("-")
    main = (schedule.writer if kind == "writer" else schedule.worker)(int(number)).run
    schedule.world.note(f"a twin of {name} starts")
    twin = Process(schedule.world, f"{name}-twin", running(schedule.world, main))
    schedule.world.after(random.choice((2.0, 15.0)), twin.kill)


def _expire(schedule: "Schedule", random: Random) -> None:
    """Logs lose the records that their readers have committed, as after days.

    It does nothing in schedules that such a time excludes: those with late requests, with lost parts not yet
    restored from `grouped`, and with tables that are rebuilt from logs but not read yet.
    """
    if schedule.shape.late or schedule.is_rebuilt:
        return
    loses_parts = any(entry.what == "part" for entry in schedule.entries)
    topics = dict.fromkeys(chain.from_iterable(schedule.readers.values()))
    for topic in topics:
        if topic in _TABLES or (topic in {Topic.EVENTS, Topic.GROUPED} and loses_parts):
            continue
        for log in schedule.broker.topics[topic_name(topic, "svc.", {})]:
            until = _read_until(schedule, topic, TopicPartition(log.topic, log.partition))
            before = log.records
            log.trim(until if random.random() < 0.5 else random.randint(0, until))
            if topic is Topic.ISSUE_ACTIVITY:
                expired = before[: len(before) - len(log.records)]
                schedule.expired.setdefault(log.partition, []).extend(expired)
    schedule.logs_expired = True
    schedule.world.note("logs expire")


def _read_until(schedule: "Schedule", topic: Topic, tp: TopicPartition) -> int:
    """The offsets that all groups of a topic have committed, and of `events` those that the writer has stored too."""
    commits = [
        schedule.broker.group(group).offsets.get(tp)
        for group, topics in schedule.readers.items()
        if topic in topics
    ]
    until = min(commit.offset if commit else 0 for commit in commits)
    if topic is not Topic.EVENTS:
        return until
    written = schedule.broker.group("svc-writer").offsets.get(
        TopicPartition(topic_name(Topic.GROUPED, "svc.", {}), tp.partition)
    )
    state = decode_plan(written.metadata) if written else NoBlock()
    return min(until, (state.source_offset if isinstance(state, NoBlock) else -1) + 1)


def _lose_table(schedule: "Schedule", random: Random) -> None:
    lose(schedule, random.choice((Topic.SEEN, Topic.ISSUES)))


def lose(schedule: "Schedule", topic: Topic, share: float = 1.0) -> None:
    """`seen` or `issues` loses its first records or all, as by an operator's mistake.

    The logs from which they are rebuilt are whole.
    """
    kinds = {entry.what for entry in schedule.entries}
    if schedule.shape.late or schedule.is_rebuilt or "retention" in kinds or "rebuild" in kinds:
        return
    _kill_all(schedule, "processors")
    for log in schedule.broker.topics[topic_name(topic, "svc.", {})]:
        log.trim(log.start + round(share * (log.end - log.start)))
    schedule.reached["seen is lost" if topic is Topic.SEEN else "issues are lost"] += 1
    schedule.world.note(f"{topic.value} is lost")


def _kill_all(schedule: "Schedule", kind: str) -> None:
    """All processors, or all writers, twins too."""
    for process in schedule.world.processes:
        if process.name.startswith(f"{kind.removesuffix('s') if kind == 'writers' else kind}-"):
            process.kill()


def _reset(schedule: "Schedule") -> None:
    """The writers are stopped, and the commits of their group are lost. Their requests have ended by then."""
    if schedule.shape.late:
        return
    _kill_all(schedule, "writers")

    def forget() -> None:
        if not any(server.running for server in schedule.servers):
            schedule.broker.group("svc-writer").offsets.clear()
            schedule.reached["commits are lost"] += 1
            schedule.world.note("the writers' commits are lost")

    schedule.world.after(0.1, forget)


def _pass_days(schedule: "Schedule", random: Random, left: int = _PASSING) -> None:
    """Days pass with an event a day; then the first event is sent again.

    Each day passes once everything that was accepted is stored.
    """
    kinds = {entry.what for entry in schedule.entries}
    if not schedule.shape.low or schedule.healed or kinds & {"refusal", "refusals", "part", "bit", "rebuild"}:
        return
    stored = {(row.project, row.id[::-1]) for row in schedule.whole().tables["events"].rows}
    if not schedule.acknowledged <= stored or any(name.startswith("post") for name in schedule.waiting):
        schedule.world.after(0.3, lambda: _pass_days(schedule, random, left))
    elif left:
        schedule.world.machine_skew += 86_400.0
        schedule.world.note("a day passes")
        schedule.post_new(random)
        if schedule.shape.days > 1:
            for events in schedule.sent[-2:-1]:
                schedule.post(events)
        schedule.world.after(0.3, lambda: _pass_days(schedule, random, left - 1))
    else:
        for events in schedule.sent[:1]:
            schedule.post(events)


def _compact(schedule: "Schedule", random: Random) -> None:
    for topic in _TABLES:
        for log in schedule.broker.topics[topic_name(topic, "svc.", {})]:
            log.compact(random.randint(log.start, log.end))
    schedule.world.note("tables are compacted")
