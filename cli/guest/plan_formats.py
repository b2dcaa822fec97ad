"""The plan in the forms that its readers use. Pure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import urlsplit

import yaml

from broker.rights import KafkaRight, Process
from cli.guest.guest_plan import Plan, native_port
from storage.rights import as_grants

_PROFILE: Final = """CREATE SETTINGS PROFILE OR REPLACE svc_reader SETTINGS readonly = 2,
  max_execution_time = 20 MIN 1 MAX 60, max_rows_to_read = 500000000 MIN 1 MAX 1000000000,
  max_memory_usage = 2000000000 MIN 1 MAX 2000000000, max_memory_usage_for_user = 4000000000 CONST,
  max_concurrent_queries_for_user = 24 CONST, max_threads = 2 MIN 1 MAX 2;"""
_WHO: Final = {
    "svc_operator": "commands: migrates, repairs, erases; the only one that changes tables",
    "svc": "writer and processors",
    "svc_reader": "dashboard and notify",
}


def user_of(process: Process) -> str:
    """The principal's name on Kafka."""
    return f"svc-{process}"


def clickhouse(plan: Plan) -> str:
    """SQL that an administrator runs, on each server; again after a change of the plan."""
    databases = [right.on.removesuffix(".*") for right in plan.grants["svc_reader"]]
    lines = [*(f"CREATE DATABASE IF NOT EXISTS {database};" for database in databases), _PROFILE]
    for user, rights in plan.grants.items():
        profile = " SETTINGS PROFILE svc_reader" if user == "svc_reader" else ""
        lines += [
            f"-- {_WHO[user]}",
            f"CREATE USER IF NOT EXISTS {user} IDENTIFIED WITH sha256_password BY 'change me'{profile};",
            *as_grants(rights, user).replace("; ", ";\n").splitlines(),
        ]
    return "\n".join(lines) + "\n"


def cluster(plan: Plan) -> str:
    """The part of each server's configuration by which several servers know each other."""
    name, servers = plan.cluster
    if len(servers) < 2:
        return "<!-- one server: nothing is needed -->\n"
    replica = "      <replica><host>{}</host><port>{}</port>{}</replica>"
    lines = ["<clickhouse>", "  <remote_servers>", f"    <{name}>", "      <secret>change me</secret>"]
    for urls in servers:
        lines += ["      <shard>"]
        lines += ["        <internal_replication>true</internal_replication>"] if len(urls) > 1 else []
        for url in urls:
            secure = "<secure>1</secure>" if url.startswith("https:") else ""
            lines.append("  " + replica.format(urlsplit(url).hostname, native_port(url), secure))
        lines += ["      </shard>"]
    return "\n".join([*lines, f"    </{name}>", "  </remote_servers>", "</clickhouse>"]) + "\n"


def kafka(plan: Plan) -> str:
    """A script for a shell with Kafka's own tools; BOOTSTRAP and CONFIG are the administrator's. It may run again."""
    tools = '--bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG"'
    lines = ["set -eu"]
    if plan.scram:
        lines += [
            f"kafka-configs.sh {tools} --alter --entity-type users --entity-name {user_of(process)}"
            f" --add-config '{plan.scram}=[password=change me]'"
            for process in plan.rights
        ]
    for topic in plan.topics:
        configs = " ".join(f"--config {name}={value}" for name, value in topic.configs.items())
        lines.append(
            f"kafka-topics.sh {tools} --create --if-not-exists --topic {topic.name} --partitions {topic.partitions}"
            f" --replication-factor {topic.replication} {configs}"
        )
    for process, rights in plan.rights.items():
        lines += [_acl(tools, process, *one) for one in _by_resource(rights).items()]
    lines.append(
        f"kafka-acls.sh {tools} --add --allow-principal User:{user_of('operator')} --operation Create"
        f" --topic {plan.prefix} --resource-pattern-type prefixed"
    )
    lines.append("# For `svc rebuild` alone; take them back afterwards, with --remove in place of --add.")
    lines += [f"# {_acl(tools, 'operator', *one)}" for one in _by_resource(plan.rebuild).items()]
    return "\n".join(lines) + "\n"


def _acl(tools: str, process: Process, resource: tuple[str, str], operations: list[str]) -> str:
    kind, name = resource
    wanted = " ".join(f"--operation {operation}" for operation in operations)
    return f"kafka-acls.sh {tools} --add --allow-principal User:{user_of(process)} {wanted} --{kind} {name}"


def helm(plan: Plan) -> str:
    """Values for the chart: the settings that aren't defaults, and for each process its user and its Secret."""
    values: dict[str, Any] = {"settings": plan.settings}
    if any(value.startswith("/certificates/") for value in plan.settings.values()):
        values["certificates"] = "svc-certificates"
    for process, keys in plan.secrets.items():
        # A process without secrets has none of the Secret that the chart names by default either.
        values[process] = {"secret": {"name": f"svc-{process}", "keys": keys}}
        if plan.has_users:
            user = user_of("operator" if process == "migrate" else cast(Process, process))
            values[process]["settings"] = {"SVC_KAFKA_USERNAME": user}
    return yaml.safe_dump(values, sort_keys=False)


def page(plan: Plan) -> str:
    """Everything for people, in Markdown."""
    parts = [
        "# Requirements of the service",
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
            + [[user_of("operator"), f"topics that begin with {plan.prefix}", "Create"]]
            + [
                [f"{user_of('operator')}, only during `svc rebuild`", f"{kind} {name}", ", ".join(operations)]
                for (kind, name), operations in _by_resource(plan.rebuild).items()
            ],
        ),
        "## Users of ClickHouse",
        f"```sql\n{clickhouse(plan)}```",
        *(
            ["## ClickHouse's configuration", f"```xml\n{cluster(plan)}```"]
            if len(plan.cluster[1]) > 1
            else []
        ),
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
    {"page": page, "kafka": kafka, "clickhouse": clickhouse, "cluster": cluster, "helm": helm}
)
