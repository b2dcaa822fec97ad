"""The plan in the forms that its readers use. Pure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import yaml

from broker.rights import KafkaRight, Process
from cli.guest.plan import Plan
from storage.rights import as_grants

_PROFILE: Final = """CREATE SETTINGS PROFILE svc_reader SETTINGS readonly = 2,
  max_execution_time = 20 MIN 1 MAX 60, max_rows_to_read = 500000000 MIN 1 MAX 1000000000,
  max_memory_usage = 2000000000 MIN 1 MAX 2000000000, max_memory_usage_for_user = 4000000000 CONST,
  max_concurrent_queries_for_user = 24 CONST, max_threads = 2 MIN 1 MAX 2;"""
_CHANNELS: Final = "SVC_NOTIFY_CHANNELS"
_WHO: Final = {
    "svc_operator": "commands: migrates, repairs, erases; the only one that changes tables",
    "svc": "writer and processors",
    "svc_reader": "dashboard and notify",
}


def user_of(process: Process) -> str:
    """The principal's name on Kafka."""
    return f"svc-{process}"


def clickhouse(plan: Plan) -> str:
    """SQL that an administrator runs once."""
    databases = [right.on.removesuffix(".*") for right in plan.grants["svc_reader"]]
    lines = [*(f"CREATE DATABASE {database};" for database in databases), _PROFILE]
    for user, rights in plan.grants.items():
        profile = " SETTINGS PROFILE svc_reader" if user == "svc_reader" else ""
        lines += [
            f"-- {_WHO[user]}",
            f"CREATE USER {user} IDENTIFIED WITH sha256_password BY 'change me'{profile};",
            *as_grants(rights, user).replace("; ", ";\n").splitlines(),
        ]
    return "\n".join(lines) + "\n"


def kafka(plan: Plan) -> str:
    """Lines for a shell with Kafka's own tools; BOOTSTRAP and CONFIG are the administrator's."""
    tools = '--bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG"'
    lines = []
    for topic in plan.topics:
        configs = " ".join(f"--config {name}={value}" for name, value in topic.configs.items())
        lines.append(
            f"kafka-topics.sh {tools} --create --if-not-exists --topic {topic.name} --partitions {topic.partitions}"
            f" --replication-factor {topic.replication} {configs}"
        )
    for process, rights in plan.rights.items():
        for (kind, name), operations in _by_resource(rights).items():
            wanted = " ".join(f"--operation {operation}" for operation in operations)
            lines.append(
                f"kafka-acls.sh {tools} --add --allow-principal User:{user_of(process)} {wanted} --{kind} {name}"
            )
    lines.append(
        f"kafka-acls.sh {tools} --add --allow-principal User:{user_of('operator')} --operation Create"
        f" --topic {plan.prefix} --resource-pattern-type prefixed"
    )
    return "\n".join(lines) + "\n"


def helm(plan: Plan) -> str:
    """Values for the chart: the settings that aren't defaults, and the names of the secrets."""
    secrets = list(
        dict.fromkeys(
            [
                *(name for name in plan.secrets if name != _CHANNELS),
                "SVC_CLICKHOUSE_URL",
                "SVC_CLICKHOUSE_READER_URL",
                "SVC_ADMIN_PASSWORD",
                "SVC_SESSION_SECRET",
            ]
        )
    )
    values: dict[str, Any] = {"settings": plan.settings, "secret": {"name": "svc", "keys": secrets}}
    if "SVC_KAFKA_PASSWORD" in plan.secrets:
        values["edge"] = {"secret": {"name": "svc-edge", "keys": ["SVC_KAFKA_PASSWORD"]}}
    if _CHANNELS in plan.secrets:
        needed = ["SVC_KAFKA_PASSWORD", _CHANNELS] if "SVC_KAFKA_PASSWORD" in plan.secrets else [_CHANNELS]
        values["notify"] = {"secret": {"name": "svc-notify", "keys": [*needed, "SVC_CLICKHOUSE_READER_URL"]}}
    return yaml.safe_dump(values, sort_keys=False)


def page(plan: Plan) -> str:
    """Everything for people, in Markdown."""
    parts = [
        "# What the service needs of others",
        "## Topics",
        _table(
            ["topic", "partitions", "replicas", "settings"],
            [
                [
                    t.name,
                    str(t.partitions),
                    str(t.replication),
                    ", ".join(f"{k}={v}" for k, v in t.configs.items()),
                ]
                for t in plan.topics
            ],
        ),
        "## Rights on Kafka",
        _table(
            ["user", "resource", "operations"],
            [
                [user_of(process), f"{kind} {name}", ", ".join(operations)]
                for process, rights in plan.rights.items()
                for (kind, name), operations in _by_resource(rights).items()
            ]
            + [[user_of("operator"), f"topics that begin with {plan.prefix}", "Create"]],
        ),
        "## Users of ClickHouse",
        f"```sql\n{clickhouse(plan)}```",
        "## Connections",
        _table(["from", "to", "port", ""], [[f.source, f.target, f.port, f.why] for f in plan.flows]),
        "## Values for the Helm chart",
        f"```yaml\n{helm(plan)}```",
        "## Alerts",
        "`docker/chart/files/alerts.yaml`, for Prometheus; `prometheusRule.enabled` of the chart installs it.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_resource(rights: list[KafkaRight]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for right in rights:
        found.setdefault((right.kind, right.name), []).append(right.operation)
    return found


FORMATS: Final[Mapping[str, Callable[[Plan], str]]] = MappingProxyType(
    {"page": page, "kafka": kafka, "clickhouse": clickhouse, "helm": helm}
)
