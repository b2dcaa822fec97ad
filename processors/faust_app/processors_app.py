"""The Faust app and its parts, built by a factory: nothing happens at import."""

from functools import partial
from typing import Any, Final, NamedTuple, cast

import faust
from faust.auth import OAuthCredentials
from faust.types import TP
from faust.types.transports import TransportT
from mode import CrashingSupervisor
from yarl import URL

from broker.batch_producer import BatchProducer
from broker.client import METADATA_AGE_MS, topic_names
from broker.kafka_diagnosis import security_options
from broker.member_name import MemberName, holders
from processors.aggregator.aggregator_stage import AggregatorStage, supersedes
from processors.batch_table import BatchTable
from processors.faust_app.agents import Agent
from processors.faust_app.fence import InterruptibleLookUp, Lease, RebalanceFence
from processors.faust_app.patches import FAUST_LOG, OrderedTableManager, PlacedConsumer
from processors.faust_app.recovery import Recovery
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.grouper_stage import GrouperStage, IdLookUp
from processors.processors_metrics import ProcessorsMetrics
from schemas.projects import ProjectRegistry
from schemas.settings import ProcessorsSettings
from schemas.topics import MAX_RECORD_BYTES, Topic

LEASE_SHARE: Final = 0.8
"""Of the session: a worker whose last heartbeat is older than this writes no more."""
BATCH_SECONDS: Final = 0.01
"""How long the grouper waits for further chunks: those of a moment share one write of each topic."""
DELTAS_BATCH: Final = 400
FOLD_SECONDS: Final = 0.05
"""How long the aggregator waits for further increments; a person's change waits as long until it shows."""
MAX_IDLE_SECONDS: Final = 2.0
"""Longest idle time of the aggregator under load.

A frequent issue is written once where it would be written twenty times."""


class ProcessorsApp(faust.App):
    """The app with the patches (`processors.faust_app.patches`)."""

    logger = FAUST_LOG
    fence: RebalanceFence
    lease: Lease
    sources: Recovery

    def _create_directories(self) -> None:
        """Nothing: the tables are in memory, and the worker needs no folder."""

    def _new_transport(self) -> TransportT:
        transport = super()._new_transport()
        app = self

        class Consumer(PlacedConsumer):
            lease = app.lease

            async def next_offsets(self, assigned: set[TP]) -> dict[TP, int]:
                return app.sources.next_offsets(assigned)

        transport.Consumer = Consumer  # type: ignore[misc]  # of this instance alone
        return transport


class Parts(NamedTuple):
    """A worker's handling of records, by topic, independent of Faust."""

    grouper: GrouperStage
    aggregator: AggregatorStage
    recovery: Recovery
    agents: dict[Topic, Agent]


def parts_of(
    settings: ProcessorsSettings,
    partitions: int,
    seen: BatchTable,
    issues: BatchTable,
    producer: BatchProducer,
    projects: ProjectRegistry,
    fence: RebalanceFence,
    metrics: ProcessorsMetrics,
    stored_ids: IdLookUp | None,
) -> Parts:
    """The parts of a worker."""
    names = topic_names(settings)
    grouper = GrouperStage(
        names,
        partitions,
        seen,
        producer,
        Fingerprinter(projects),
        GroupedTail(settings),
        metrics,
        days=settings.dedupe_days,
        grouped_events=settings.grouped_events,
        bad_limit=settings.processors_bad_limit,
        stored_ids=None if stored_ids is None else InterruptibleLookUp(stored_ids, fence),
    )
    aggregator = AggregatorStage(
        names, partitions, issues, seen, producer, metrics, bad_limit=settings.processors_bad_limit
    )
    of_events = Agent(
        "grouper",
        grouper,
        fence,
        max_records=settings.processors_batch_chunks,
        seconds=BATCH_SECONDS,
    )
    of_deltas = Agent(
        "aggregator",
        aggregator,
        fence,
        max_records=DELTAS_BATCH,
        seconds=FOLD_SECONDS,
        idle_seconds=MAX_IDLE_SECONDS,
    )
    recovery = Recovery(names, grouper, aggregator, fence, metrics, lambda: seen.read + issues.read)
    return Parts(grouper, aggregator, recovery, {Topic.EVENTS: of_events, Topic.ISSUE_DELTAS: of_deltas})


class Processors:
    """One worker: its app and the parts of it."""

    def __init__(
        self,
        settings: ProcessorsSettings,
        partitions: int,
        projects: ProjectRegistry,
        metrics: ProcessorsMetrics,
        stored_ids: IdLookUp | None = None,
    ) -> None:
        self.settings = settings
        self.partitions = partitions
        self.names = names = topic_names(settings)
        self.metrics = metrics
        self.fence = RebalanceFence()
        self.lease = Lease(LEASE_SHARE * settings.kafka_session_seconds)
        self.name = MemberName(
            settings.processors_app,
            f"SVC_PROCESSORS_WORKER={settings.processors_worker}",
            settings.kafka_session_seconds,
            partial(holders, settings, settings.processors_app, _instance(settings)),
        )
        self.producer = BatchProducer(settings, self.lease.check)
        self.app = _app(settings, partitions)
        self.app.fence, self.app.lease = self.fence, self.lease
        seen = self._table("seen", names[Topic.SEEN], self._restore, owner=settings.processors_worker)
        issues = self._table("issues", names[Topic.ISSUES], _no_restore, supersedes=supersedes)
        parts = parts_of(
            settings, partitions, seen, issues, self.producer, projects, self.fence, metrics, stored_ids
        )
        self.grouper, self.aggregator, self.recovery, agents = parts
        self.app.sources = self.recovery
        for topic, agent in agents.items():
            source = self.app.topic(names[topic], key_type=bytes, value_type=bytes, partitions=partitions)
            self.app.agent(source, name=agent.name, concurrency=1)(agent.function(self._generation))
        self.app.on_partitions_assigned.connect(self._assigned, weak=False)
        self.app.on_partitions_revoked.connect(self._revoked, weak=False)

    def next_offsets(self) -> dict[TP, int]:
        """The next offsets of the assigned source partitions; none during a rebalance."""
        if not self.fence.open:
            return {}
        assigned: set[TP] = self.app.consumer.assignment()
        return self.recovery.next_offsets(assigned)

    def _table(self, name: str, topic: str, restore: Any, **options: Any) -> Any:
        table = BatchTable(self.app, name, topic, self.partitions, self.producer, restore, **options)
        return self.app.tables.add(table)

    def _generation(self) -> int:
        generation: int = self.app.consumer_generation_id
        return generation

    async def _restore(self, partitions: set[int]) -> None:
        await self.recovery.restore(self.app.consumer, partitions)

    async def _assigned(self, *arguments: Any, **_: Any) -> None:
        self.name.joined(cast(PlacedConsumer, self.app.consumer).member_id)
        await self.recovery.begin(arguments[-1])

    async def _revoked(self, *_: Any, **__: Any) -> None:
        try:
            await self.fence.stop_batches(self.lease.seconds)
        except TimeoutError as error:
            await self.app.crash(error)


async def _no_restore(partitions: set[int]) -> None:
    """Both tables are read before `restore` of either, so one of them restores both stages."""


def _instance(settings: ProcessorsSettings) -> str:
    return f"{settings.processors_app}-{settings.processors_worker}"


def _app(settings: ProcessorsSettings, partitions: int) -> ProcessorsApp:
    return ProcessorsApp(
        settings.processors_app,
        broker=[URL(f"kafka://{server}") for server in settings.kafka_bootstrap.split(",")],
        broker_credentials=_credentials(settings),
        broker_client_id=settings.kafka_client_id,
        store="memory://",
        TableManager=OrderedTableManager,
        agent_supervisor=CrashingSupervisor,
        processing_guarantee="at_least_once",
        consumer_group_instance_id=_instance(settings),
        consumer_auto_offset_reset="earliest",
        topic_partitions=partitions,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        key_serializer="raw",
        value_serializer="raw",
        stream_wait_empty=False,
        stream_buffer_maxsize=256,
        stream_recovery_delay=0.0,
        # Faust's default is 1. A copy takes as much memory again, to save seconds of a takeover.
        table_standby_replicas=0,
        broker_session_timeout=settings.kafka_session_seconds,
        broker_heartbeat_interval=settings.kafka_heartbeat_seconds,
        broker_commit_interval=1.0,
        broker_request_timeout=90.0,
        broker_max_poll_records=200,
        consumer_metadata_max_age_ms=METADATA_AGE_MS,
        producer_metadata_max_age_ms=METADATA_AGE_MS,
        consumer_max_fetch_size=MAX_RECORD_BYTES,
        producer_threaded=False,
        producer_acks=-1,
        producer_linger=0.005,
        producer_max_batch_size=1 << 20,
        producer_max_request_size=MAX_RECORD_BYTES,
    )


def _credentials(settings: ProcessorsSettings) -> Any:
    options = security_options(settings)
    context = options.get("ssl_context")
    if "sasl_oauth_token_provider" in options:
        return OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    if "sasl_mechanism" in options:
        return faust.SASLCredentials(
            username=options["sasl_plain_username"],
            password=options["sasl_plain_password"],
            mechanism=options["sasl_mechanism"],
            ssl_context=context,
        )
    return faust.SSLCredentials(context=context) if context is not None else None
