"""Settings: a frozen struct for each process (contract, section 1). `schemas.environment` reads them.

Units are part of the names.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from schemas.topics import whole_names

Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]


def about(description: str) -> Meta:
    """The purpose of a setting."""
    return Meta(description=description)


def secret(description: str) -> Meta:
    """The purpose of a setting whose value no output shows."""
    return Meta(description=description, extra={"secret": True})


HealthHost = Annotated[str, about("address of health and metrics of processors, writer and notify")]
DashboardUrl = Annotated[
    str,
    about("address of the dashboard, for links in messages and on its pages; unset: messages have no links"),
]


class LogSettings(Struct, frozen=True, kw_only=True):
    """Every process."""

    data_dir: Annotated[
        str,
        about("folder of this machine's data: spool, local servers, caches; .svc: needs no special rights"),
    ] = ".svc"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], about("minimum log level; info: nothing for each event")
    ] = "info"
    instance: Annotated[
        str, about("text that readyz returns, by which `svc up` recognizes its own processes")
    ] = ""


class KafkaSettings(LogSettings, frozen=True, kw_only=True):
    """Kafka's address and topic names."""

    kafka_bootstrap: Annotated[str, about("host:port list; unset: `svc up` starts a local broker")] = ""
    kafka_security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        about("security protocol; PLAINTEXT: a local broker"),
    ] = "PLAINTEXT"
    kafka_sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"],
        about("with SASL_*; SCRAM-SHA-512: the strongest with a password"),
    ] = "SCRAM-SHA-512"
    kafka_username: Annotated[str, about("with SASL_*; with OAUTHBEARER the client's id")] = ""
    kafka_password: Annotated[str, secret("with SASL_*; with OAUTHBEARER the client's secret")] = ""
    kafka_token_url: Annotated[
        str, about("with OAUTHBEARER: address that issues tokens (client credentials)")
    ] = ""
    kafka_token_scope: Annotated[str, about("with OAUTHBEARER: scope, if the address needs one")] = ""
    kafka_ca_file: Annotated[str, about("PEM file of the CA; unset: the system's CAs")] = ""
    kafka_certificate_file: Annotated[
        str, about("PEM file of the client certificate, where brokers want one")
    ] = ""
    kafka_key_file: Annotated[str, about("PEM file of its private key; unset: in the certificate's file")] = (
        ""
    )
    kafka_client_id: Annotated[str, about("name of the clients in the brokers' logs, metrics and quotas")] = (
        "svc"
    )
    kafka_session_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=30,
            description=(
                "a worker or writer that is silent for longer loses its partitions; "
                "10: a dead one is noticed soon; brokers allow 6 by default"
            ),
        ),
    ] = 10.0
    topic_prefix: Annotated[
        str, about("prefix of all topic names; svc.: tells them apart on a shared Kafka")
    ] = "svc."
    topic_partitions: Annotated[
        int,
        Meta(
            ge=1,
            le=256,
            description=(
                "partitions of each topic that `svc migrate` creates; they must not change later; "
                "4: enough for one machine"
            ),
        ),
    ] = 4
    topic_replication: Annotated[
        int,
        Meta(ge=1, le=9, description="replicas of each topic that `svc migrate` creates; 1: a local broker"),
    ] = 1
    topic_names: Annotated[
        str, about("whole names of topics, without the prefix: events=NAME,grouped=NAME")
    ] = ""

    @property
    def kafka_heartbeat_seconds(self) -> float:
        """The interval of heartbeats: some may get lost within a session."""
        return self.kafka_session_seconds / 5

    @property
    def topic_overrides(self) -> dict[str, str]:
        """The whole names that are set, by topic title. Raises BadSetting."""
        return whole_names(self.topic_names)


class ClickHouseSettings(KafkaSettings, frozen=True, kw_only=True):
    """ClickHouse's address."""

    clickhouse_url: Annotated[
        str, secret("http(s)://user:password@host:port/database; unset: `svc up` starts a local one")
    ] = ""
    clickhouse_shards: Annotated[
        str,
        secret(
            "instead of SVC_CLICKHOUSE_URL: comma-separated addresses of n servers; "
            "vertical bars separate replicas; "
            "don't reorder or change: partition p is stored on server p mod n"
        ),
    ] = ""
    clickhouse_cluster: Annotated[
        str,
        Meta(
            pattern=r"^\w*$",
            description=("name of these servers, in the same order, in their `remote_servers`"),
        ),
    ] = ""
    clickhouse_reader_url: Annotated[
        str,
        secret(
            "address with a user who only reads, within limits; any of several servers; "
            "unset: SVC_CLICKHOUSE_URL"
        ),
    ] = ""
    clickhouse_ca_file: Annotated[str, about("PEM file of the CA for https; unset: the system's CAs")] = ""

    @property
    def shard_urls(self) -> tuple[str, ...]:
        """The addresses of the servers in their order, of replicas the first.

        A single server gives one; the result is empty if none is known.
        """
        return tuple(urls[0] for urls in self.replica_urls)

    @property
    def replica_urls(self) -> tuple[tuple[str, ...], ...]:
        """The same with the addresses of all replicas."""
        named = self.clickhouse_shards or self.clickhouse_url
        shards = (shard.split("|") for shard in named.split(",")) if self.clickhouse_shards else [[named]]
        stripped = (tuple(url for url in map(str.strip, urls) if url) for urls in shards)
        return tuple(urls for urls in stripped if urls)

    @property
    def reader_url(self) -> str:
        """The address for reading; empty if none is known."""
        return self.clickhouse_reader_url or self.clickhouse_url


class PipelineSettings(ClickHouseSettings, frozen=True, kw_only=True):
    """The pipeline's consumer groups, and what it writes."""

    processors_app: Annotated[str, about("Faust's app id: consumer group of the grouper and aggregator")] = (
        "svc-processors"
    )
    writer_group: Annotated[str, about("consumer group of the writer")] = "svc-writer"
    grouped_events: Annotated[
        bool,
        about("also write each event to grouped-events; false: it costs a third of the throughput"),
    ] = False


class EdgeSettings(KafkaSettings, frozen=True, kw_only=True):
    """`svc edge`."""

    ingest_host: Annotated[str, about("address to listen on; 127.0.0.1: nothing is exposed unasked")] = (
        "127.0.0.1"
    )
    ingest_port: Annotated[
        Port, about("port to listen on; 8080 to 8084: all processes fit on one machine")
    ] = 8080
    edge_workers: Annotated[
        Positive,
        about(
            "processes that share the port; `--workers` overrides it; "
            "1: a core takes tens of thousands of events a second"
        ),
    ] = 1
    edge_send_deadline_seconds: Annotated[
        Seconds,
        about(
            "maximum wait for Kafka's acknowledgement before an event is spooled; "
            "2: clients still wait for their response"
        ),
    ] = 2.0
    edge_connections: Annotated[
        Positive,
        about(
            "open connections of a worker; further ones are closed; "
            "20000: fewer if its limit of file descriptors is lower"
        ),
    ] = 20_000
    edge_address_connections: Annotated[
        NotNegative,
        about(
            "those of one IPv4 address or IPv6 /64, at most half of all; "
            "5000: one address can't take them all; 0: any number, behind proxies"
        ),
    ] = 5000
    edge_head_seconds: Annotated[
        Seconds,
        about("maximum time to receive a request's head; 10: a phone needs less"),
    ] = 10.0
    edge_body_timeout_seconds: Annotated[
        Seconds, about("maximum time to receive a body; 30: a slow mobile line")
    ] = 30.0
    edge_body_least_rate: Annotated[
        Positive,
        about(
            "minimum average rate of a body after 5 s, in bytes a second; a slower connection is closed; "
            "1024: below any usable line"
        ),
    ] = 1024
    edge_body_bytes: Annotated[
        Positive,
        about(
            "bytes of unanswered bodies in a worker; beyond it requests get 503; "
            "256 MiB: fits a small container"
        ),
    ] = 268_435_456
    edge_token_body_bytes: Annotated[
        Positive,
        about(
            "bytes of them that one token may hold; beyond it its requests get 429; "
            "32 MiB: an eighth, so one token never fills the memory"
        ),
    ] = 33_554_432
    edge_drain_seconds: Annotated[
        Seconds,
        about(
            "time between failing readyz and closing the port at SIGTERM; "
            "0.2: no load balancer; with one, the interval of its checks"
        ),
    ] = 0.2
    edge_stop_seconds: Annotated[
        Seconds, about("maximum wait for requests in flight at SIGTERM; 20: below Kubernetes' 30")
    ] = 20.0
    spool_max_bytes: Annotated[
        Positive,
        about("maximum disk space of the spool; beyond it requests get 503; 1 GiB: some two million events"),
    ] = 1_073_741_824
    spool_max_age_hours: Annotated[
        Seconds,
        about(
            "age of the oldest event at which a spool refuses new ones; "
            "72: a long weekend, within SVC_DEDUPE_DAYS"
        ),
    ] = 72.0
    rate_limit_store: Annotated[
        str, secret("redis:// or valkey:// URL; unset: shared by the workers of one machine")
    ] = ""
    rate_limit_store_seconds: Annotated[
        Seconds,
        about("maximum wait for the store; then the machine decides alone for 5 s; 0.25: a client waits"),
    ] = 0.25


class ProcessorsSettings(PipelineSettings, frozen=True, kw_only=True):
    """`svc processors`."""

    processors_worker: Annotated[
        str, about("name of this worker, stable and unique: its static member id and data folder")
    ] = "0"
    health_host: HealthHost = "127.0.0.1"
    processors_health_port: Annotated[Port, about("port of health and metrics")] = 8082
    processors_batch_chunks: Annotated[
        Positive,
        about("maximum chunks in a batch; 48: thousands of events share a batch's costs"),
    ] = 48
    processors_bad_limit: Annotated[
        int,
        Meta(
            ge=0,
            le=200,
            description=(
                "stop when this many of the last 200 records can't be decoded; "
                "100: then this version is to blame, not the records; 0: never"
            ),
        ),
    ] = 100
    dedupe_days: Annotated[
        int,
        Meta(
            ge=7,
            le=90,
            description=(
                "days for which an id is remembered; older ones are looked up in SVC_CLICKHOUSE_URL; "
                "7: the retention of `events`; more days cost memory and recovery time"
            ),
        ),
    ] = 7


class WriterSettings(PipelineSettings, frozen=True, kw_only=True):
    """`svc writer`."""

    writer_worker: Annotated[str, about("name of this writer, stable and unique")] = "0"
    health_host: HealthHost = "127.0.0.1"
    writer_health_port: Annotated[Port, about("port of health and metrics")] = 8083
    writer_block_rows: Annotated[
        Positive,
        about(
            "rows after which a block is inserted; 20000: an insert costs about the same whatever its size"
        ),
    ] = 20_000
    writer_wait_seconds: Annotated[
        Seconds, about("maximum wait for a block to fill under load; 1: fewer, larger inserts")
    ] = 1.0
    writer_quiet_seconds: Annotated[
        Seconds, about("wait after the first row when few events arrive; 0.1: people don't notice it")
    ] = 0.1
    writer_audit_seconds: Annotated[
        Seconds,
        about("interval of the audit; 60: a fault shows within minutes, for 0.3 % of two cores"),
    ] = 60.0


class DashboardSettings(PipelineSettings, frozen=True, kw_only=True):
    """`svc dashboard`."""

    dashboard_host: Annotated[str, about("address to listen on")] = "127.0.0.1"
    dashboard_port: Annotated[Port, about("port to listen on")] = 8081
    admin_password: Annotated[str, secret("sign-in of the dashboard and the read API")]
    session_secret: Annotated[str, secret("key of the session cookies; unset: derived from the password")] = (
        ""
    )
    session_hours: Annotated[
        Positive, about("hours that a sign-in lasts; 168: people sign in once a week")
    ] = 168
    secure_cookies: Annotated[
        bool,
        about("send cookies only over https, whatever a proxy reports; false: http://127.0.0.1 must work"),
    ] = False
    dashboard_trusted_proxies: Annotated[
        str,
        about(
            "addresses and networks of proxies, separated by commas, "
            "whose X-Forwarded-For and X-Forwarded-Proto are trusted; unset: none"
        ),
    ] = ""
    dashboard_proxy_user_header: Annotated[
        str,
        about("header in which a trusted proxy names the person who signed in; unset: no sign-in by a proxy"),
    ] = ""
    dashboard_proxy_groups_header: Annotated[
        str, about("header of the person's groups, separated by commas; unset: no groups")
    ] = ""
    dashboard_proxy_secret: Annotated[
        str,
        secret("what the proxy sends as Svc-Proxy-Secret, at least 16 characters; required with the header"),
    ] = ""
    dashboard_proxy_sign_out_url: Annotated[
        str, about("address at which the proxy signs people out; unset: they stay signed in there")
    ] = ""
    dashboard_password_sign_in: Annotated[
        bool, about("accept the admin password; true: a way in while the proxy is broken")
    ] = True
    dashboard_roles: Annotated[
        str,
        about(
            "JSON object of the groups of the roles viewer, member and admin; `*` is everyone "
            "whom the proxy signed in; in `projects` the same by id or name"
        ),
    ] = '{"viewer": ["*"]}'
    dashboard_partial_answers: Annotated[
        bool,
        about(
            "answer without the rows of unavailable ClickHouse servers, and say so; "
            "false: 503, since people believe low figures"
        ),
    ] = False
    source_map_days: Annotated[
        Positive,
        about(
            "days that an uploaded source map is kept, at least as long as the project's events; "
            "365: releases stay in use for long"
        ),
    ] = 365
    source_map_megabytes: Annotated[
        Positive, about("compressed source maps that a project may have; 2000: some hundred releases")
    ] = 2000
    ingest_url: Annotated[str, about("address of the ingest endpoints, shown in a new project")] = ""
    dashboard_url: DashboardUrl = ""


class NotifySettings(ClickHouseSettings, frozen=True, kw_only=True):
    """`svc notify`."""

    notify_channels: Annotated[
        str,
        secret(
            "JSON object of channels by name, each with `apprise` (a URL of that library), "
            "`webhook` and `secret`, or `alertmanager`"
        ),
    ] = ""
    notify_group: Annotated[str, about("consumer group; one member is active, the others stand by")] = (
        "svc-notify"
    )
    health_host: HealthHost = "127.0.0.1"
    notify_health_port: Annotated[Port, about("port of health and metrics")] = 8084
    notify_seconds: Annotated[
        Seconds, about("maximum wait for a channel's answer; 10: mail servers are slow")
    ] = 10.0
    dashboard_url: DashboardUrl = ""


class MigrateSettings(PipelineSettings, frozen=True, kw_only=True):
    """`svc migrate` and the commands that need both servers."""


class AnalystSettings(LogSettings, frozen=True, kw_only=True):
    """ClickHouse's user `analyst`: `svc up` with a local ClickHouse, and `svc analysts`."""

    analyst_password: Annotated[
        str, secret("password of ClickHouse's user `analyst`; unset: generated, in the data directory")
    ] = ""
    analyst_projects: Annotated[
        str,
        Meta(
            pattern=r"^\s*(\d+\s*(,\s*\d+\s*)*)?$",
            description="ids of the projects that the local analyst sees, separated by commas; unset: every project",
        ),
    ] = ""

    @property
    def projects(self) -> tuple[int, ...]:
        """The projects that are named."""
        return tuple(int(number) for number in self.analyst_projects.split(",") if number.strip())


class LibrarySettings(Struct, frozen=True, kw_only=True):
    """The reporting library's own variables, read also by `svc send`.

    Protocol, section 1.
    """

    token: Annotated[str, secret("project token")] = ""
    ingest_url: Annotated[str, about("address of the ingest endpoints")] = ""


class UploadSettings(LogSettings, frozen=True, kw_only=True):
    """`svc sourcemaps upload`."""

    dashboard_url: DashboardUrl = ""
    api_key: Annotated[str, secret("key of a program, with the scope artifacts")] = ""
    admin_password: Annotated[str, secret("the admin password, if there is no key")] = ""


ALL: Final = (
    EdgeSettings,
    ProcessorsSettings,
    WriterSettings,
    DashboardSettings,
    NotifySettings,
    MigrateSettings,
    AnalystSettings,
    LibrarySettings,
    UploadSettings,
)
"""All settings structs, and thereby all variables."""
