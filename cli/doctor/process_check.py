"""The checks of `svc doctor` on running processes: each one found is asked, and its lag is watched.

Kafka knows the addresses of members of consumer groups. Edge and dashboard are in no group: they are found at the
addresses of the settings and of `--ask`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct

from broker.consumer_lag import readers_of
from broker.errors import KafkaError
from broker.group_progress import GroupProgress, progress
from cli.doctor.basic_checks import Finding
from local.readiness import local_url, readiness_of
from schemas.addresses import host_port
from schemas.environment import load
from schemas.errors import AnotherProgram
from schemas.settings import (
    DashboardSettings,
    EdgeSettings,
    MigrateSettings,
    NotifySettings,
    ProcessorsSettings,
    WriterSettings,
)
from schemas.topics import Topic

ANSWER_SECONDS: Final = 5.0
HANDLE_SECONDS: Final = 10.0
"""Time in which a running group handles records of each partition with a backlog."""
_KAFKA_SECONDS: Final = 30.0
_NAMED: Final = 8
AT_ONCE: Final = 32
"""Checks at the same time."""
_READYZ: Final = "docs/operate/monitor.md#parts-of-readyz"


class Expected(Struct, frozen=True):
    """A process by its subcommand, the groups that it is in, and where it listens."""

    name: str
    groups: Mapping[str, list[Topic]]
    host: str
    port: int


def expected(environ: Mapping[str, str], settings: MigrateSettings) -> list[Expected]:
    """Every process that may run with these settings."""
    edge, processors = load(EdgeSettings, environ), load(ProcessorsSettings, environ)
    writer, notify = load(WriterSettings, environ), load(NotifySettings, environ)
    if not {"SVC_ADMIN_PASSWORD", "SVC_ADMIN_PASSWORD_FILE"} & environ.keys():
        environ = {**environ, "SVC_ADMIN_PASSWORD": "of the dashboard alone"}
    dashboard = load(DashboardSettings, environ)
    groups = readers_of(settings)
    grouping = {processors.processors_app: groups.pop(processors.processors_app)}
    notifying: dict[str, list[Topic]] = {notify.notify_group: []}
    return [
        Expected("edge", {}, edge.ingest_host, edge.ingest_port),
        Expected("processors", grouping, processors.health_host, processors.processors_health_port),
        Expected("writer", groups, writer.health_host, writer.writer_health_port),
        Expected("dashboard", {}, dashboard.dashboard_host, dashboard.dashboard_port),
        Expected("notify", notifying, notify.health_host, notify.notify_health_port),
    ]


def check_processes(
    settings: MigrateSettings,
    processes: Sequence[Expected],
    named: Iterable[str] = (),
    *,
    all_here: bool = False,
    kafka_answers: bool = True,
    seconds: float = HANDLE_SECONDS,
) -> list[Finding]:
    """Check the groups of the pipeline, and ask each process that is found.

    Those `named` by their addresses must answer, and where `svc up` runs (`all_here`) each process but notify at
    the address of its settings. A group has so many seconds to handle something; meanwhile all are asked whose
    addresses Kafka needn't say.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        at_names = [pool.submit(ask, "named", address.rstrip("/"), must=True) for address in named]
        must = {one.name for one in processes if all_here and one.name != "notify"}
        at_settings = {
            one.name: pool.submit(ask, one.name, local_url(one.host, one.port), must=one.name in must)
            for one in processes
        }
        groups = {group: topics for one in processes for group, topics in one.groups.items()}
        results: list[Finding | None] = []
        states: dict[str, GroupProgress] = {}
        try:
            if kafka_answers:
                states = {one.group: one for one in asyncio.run(_progress(settings, groups, seconds))}
        except (KafkaError, OSError) as error:
            detail = f"Kafka doesn't say which processes take part: {str(error) or type(error).__name__}"
            results.append(Finding("processes", False, detail, "see the broker's log and load"))
        for process in processes:
            taking_part = [
                states[group]
                for group, topics in process.groups.items()
                if group in states and (states[group].hosts or topics)
            ]
            results += [group_finding(process.name, state) for state in taking_part]
            members = {
                f"http://{host_port(host, process.port)}" for state in taking_part for host in state.hosts
            } - {local_url(process.host, process.port)}
            at_members = [pool.submit(ask, process.name, at, must=False) for at in sorted(members)]
            # A process in a group that has no member here is another deployment's.
            if process.name in must or any(state.hosts for state in taking_part) or not process.groups:
                results.append(at_settings[process.name].result())
            results += [answer.result() for answer in at_members]
        results += [answer.result() for answer in at_names]
    return [finding for finding in results if finding]


async def _progress(
    settings: MigrateSettings, groups: Mapping[str, list[Topic]], seconds: float
) -> list[GroupProgress]:
    async with asyncio.timeout(_KAFKA_SECONDS + seconds):
        return await progress(settings, groups, seconds)


def group_finding(name: str, state: GroupProgress) -> Finding:
    """Whether a process's group has members and reduces its lag. Pure."""
    records = sum(state.waiting.values())
    waits = f", {records:,} records wait" if records else ""
    if not state.hosts and (records or state.started):
        fix = f"start `svc {name}`; if it runs, its log says why it doesn't join"
        return Finding(name, False, f"no process is in the group {state.group}{waits}", fix)
    if state.idle:
        records = sum(state.waiting[partition] for partition in state.idle)
        names = ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(state.idle)[:_NAMED])
        more = f" and {len(state.idle) - _NAMED} more" if len(state.idle) > _NAMED else ""
        detail = f"{state.group} handles none of the {records:,} records that wait in {names}{more}"
        return Finding(name, False, detail, f"see its log and readyz ({_READYZ})")
    if not state.hosts:
        return Finding(name, True, f"nothing has been in the group {state.group} yet")
    return Finding(name, True, f"{len(state.hosts)} in the group {state.group}{waits}")


def ask(name: str, address: str, *, must: bool) -> Finding | None:
    """Whether the process at an address is ready. None if none can be reached there, and none `must`."""
    try:
        readiness = readiness_of(address, ANSWER_SECONDS)
    except TimeoutError:
        return Finding(name, False, f"{address} takes connections and doesn't answer", "restart it")
    except (OSError, AnotherProgram) as error:
        problem = Finding(
            name, False, f"nothing of ours answers at {address} ({error})", "start it, or see its log"
        )
        return problem if must else None
    parts = "; ".join(f"{part}: {state.detail}" for part, state in readiness.parts.items() if not state.ok)
    if readiness.ready and not parts:
        return Finding(name, True, f"{address} is ready")
    ready = "is ready, but not everything works" if readiness.ready else "is not ready"
    return Finding(name, False, f"{address} {ready}: {parts}", f"see its log ({_READYZ})")
