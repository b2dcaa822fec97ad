"""`svc guest plan` has the requirements of the code, under the deployment's names, in each format."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner

from broker.rights import needs, rights_of
from cli.__main__ import svc
from cli.guest.plan_formats import FORMATS
from schemas.settings import PipelineSettings
from schemas.topics import topic_specs
from tests.granted_clickhouse import documented, grants

NAMES = {
    "SVC_KAFKA_BOOTSTRAP": "k1.example.org:9093,k2.example.org:9093",
    "SVC_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "SVC_KAFKA_USERNAME": "team",
    "SVC_KAFKA_PASSWORD": "top secret word",
    "SVC_TOPIC_PREFIX": "team-errors.",
    "SVC_TOPIC_PARTITIONS": "12",
    "SVC_TOPIC_REPLICATION": "3",
    "SVC_TOPIC_NAMES": "events=Errors_In",
    "SVC_PROCESSORS_APP": "team-processors",
    "SVC_WRITER_GROUP": "team-writer",
    "SVC_NOTIFY_GROUP": "team-notify",
    "SVC_NOTIFY_CHANNELS": '{"team": {"webhook": "https://chat.example.org/a third secret"}}',
    "SVC_CLICKHOUSE_URL": "https://svc:another secret@clickhouse.example.org:8443/errors",
}
SETTINGS = PipelineSettings(
    topic_prefix="team-errors.",
    topic_names="events=Errors_In",
    processors_app="team-processors",
    writer_group="team-writer",
)
RIGHTS = {
    (f"svc-{process}", right.kind, right.name, right.operation)
    for process, need in needs(SETTINGS, "team-notify").items()
    for right in rights_of(need, SETTINGS)
} | {("svc-operator", "topic", "team-errors.", "Create")}
TOPICS = {
    spec.name: (spec.partitions, spec.replication, spec.configs)
    for spec in topic_specs("team-errors.", {"events": "Errors_In"}, 12, 3)
    if spec.name != "team-errors.grouped-events"
}


def printed(tmp_path: Path, format_: str, **env: str) -> str:
    words = ["--data-dir", str(tmp_path), "guest", "plan", "--format", format_]
    answer = CliRunner().invoke(svc, words, env={**NAMES, **env})
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("format_", FORMATS)
def test_no_format_shows_a_secret(format_: str, tmp_path: Path) -> None:
    text = printed(tmp_path, format_)
    assert "top secret" not in text
    assert "another secret" not in text
    assert "third secret" not in text


def test_lines_for_kafkas_tools_are_the_rights_and_topics(tmp_path: Path) -> None:
    topics, rights, users = {}, set(), set[str]()
    first, *lines = printed(tmp_path, "kafka").splitlines()
    assert first == "set -eu"
    for line in lines:
        if line.startswith("#"):
            continue
        command, *words = shlex.split(line)
        given: dict[str, list[str]] = {}
        for name, value in pairwise(words):
            given.setdefault(name, []).append(value)
        if command == "kafka-topics.sh":
            configs = dict(one.split("=", 1) for one in given["--config"])
            topics[given["--topic"][0]] = (
                int(given["--partitions"][0]),
                int(given["--replication-factor"][0]),
                configs,
            )
            continue
        if command == "kafka-configs.sh":
            assert given["--add-config"] == ["SCRAM-SHA-512=[password=change me]"]
            users.add(*given["--entity-name"])
            continue
        [user] = given["--allow-principal"]
        kind = "topic" if "--topic" in given else "group"
        assert ("--resource-pattern-type" in given) == (given["--operation"] == ["Create"])
        rights |= {
            (user.removeprefix("User:"), kind, given[f"--{kind}"][0], operation)
            for operation in given["--operation"]
        }
    assert topics == TOPICS
    assert rights == RIGHTS
    assert users == {user for user, *_ in RIGHTS}


def test_rights_to_delete_are_for_a_rebuild_alone(tmp_path: Path) -> None:
    lines = printed(tmp_path, "kafka").splitlines()
    deleting = [line for line in lines if "Delete" in line or "AlterConfigs" in line]
    assert [line[:16] for line in deleting] == ["# kafka-acls.sh "] * 2
    assert "only during `svc rebuild` | topic team-errors.seen" in printed(tmp_path, "page")


@pytest.mark.parametrize("on", ["true", "false"])
def test_grouped_events_are_planned_where_they_are_written(tmp_path: Path, on: str) -> None:
    for format_ in ("page", "kafka"):
        text = printed(tmp_path, format_, SVC_GROUPED_EVENTS=on)
        assert ("team-errors.grouped-events" in text) == (on == "true")
    values = yaml.safe_load(printed(tmp_path, "helm", SVC_GROUPED_EVENTS=on))
    assert values["settings"].get("SVC_GROUPED_EVENTS", "false") == on


def test_users_of_clickhouse_get_the_documented_rights(tmp_path: Path) -> None:
    sql = printed(tmp_path, "clickhouse")
    assert "GRANT SELECT ON errors.* TO svc_reader;" in sql
    assert "svc.*" not in sql
    for user in ("svc_operator", "svc", "svc_reader"):
        wanted = {
            f"{privilege.strip().removesuffix(' ON ' + on)} ON {on}"
            for statement in grants(user)
            for privileges, on in [statement.removeprefix("GRANT ").rsplit(" ON ", 1)]
            for privilege in privileges.split(",")
        }
        given = set(re.findall(rf"^GRANT (.+) TO {user};$", sql, re.MULTILINE))
        assert {_plain(right) for right in given} == {_plain(right) for right in wanted}
    profile = sql[sql.index("CREATE SETTINGS PROFILE") : sql.index(";", sql.index("CREATE SETTINGS PROFILE"))]
    assert profile in documented()


def _plain(right: str) -> str:
    """A right under the documents' name of the database; `A ON x, B ON y` of the documents was cut at the comma."""
    engine = re.match(r"TABLE ENGINE ON (\w+)", right)
    return engine[0] if engine else right.replace("errors.", "svc.")


def test_values_are_those_of_the_settings_that_are_no_defaults(tmp_path: Path) -> None:
    values = yaml.safe_load(printed(tmp_path, "helm"))
    schema = json.loads((Path(__file__).parents[4] / "docker/chart/values.schema.json").read_text())
    assert set(values) <= set(schema["properties"])
    assert values["settings"] == {
        name: value
        for name, value in NAMES.items()
        if not name.endswith(("_PASSWORD", "_USERNAME", "_URL", "_CHANNELS"))
    }
    assert values["edge"] == {
        "secret": {"name": "svc-edge", "keys": ["SVC_KAFKA_PASSWORD"]},
        "settings": {"SVC_KAFKA_USERNAME": "svc-edge"},
    }
    assert values["migrate"]["settings"] == {"SVC_KAFKA_USERNAME": "svc-operator"}


def test_only_notify_gets_the_addresses_of_its_channels(tmp_path: Path) -> None:
    values = yaml.safe_load(printed(tmp_path, "helm"))
    assert values["notify"]["secret"]["keys"] == [
        "SVC_KAFKA_PASSWORD",
        "SVC_CLICKHOUSE_URL",
        "SVC_CLICKHOUSE_READER_URL",
        "SVC_NOTIFY_CHANNELS",
    ]
    assert [name for name, one in values.items() if "SVC_NOTIFY_CHANNELS" in str(one)] == ["notify"]
    assert "notify" not in yaml.safe_load(printed(tmp_path, "helm", SVC_NOTIFY_CHANNELS=""))


def test_the_page_names_every_connection(tmp_path: Path) -> None:
    text = printed(
        tmp_path,
        "page",
        SVC_RATE_LIMIT_STORE="redis://limits.example.org",
        SVC_KAFKA_SASL_MECHANISM="OAUTHBEARER",
        SVC_KAFKA_TOKEN_URL="https://login.example.org/token",
    )
    assert "| edge | Kafka | 9093 | SASL_SSL |" in text
    assert "| writer | ClickHouse | 8443 | HTTPS |" in text
    assert "| notify | Kafka | 9093 | SASL_SSL |" in text
    assert "| notify | ClickHouse | 8443 | HTTPS |" in text
    assert "| notify | mail, chat, webhooks |" in text
    assert "| edge | rate limit store | 6379 |" in text
    assert "| all | login.example.org | 443 |" in text
    assert "applications | edge | 8080" in text


def test_several_servers_have_a_second_database_and_a_group_each(tmp_path: Path) -> None:
    hosts = [f"https://svc:another secret@ch{number}.example.org:8443/errors" for number in (1, 2)]
    spread = {
        "SVC_CLICKHOUSE_URL": "",
        "SVC_CLICKHOUSE_SHARDS": ",".join(hosts),
        "SVC_CLICKHOUSE_CLUSTER": "events",
    }
    sql = printed(tmp_path, "clickhouse", **spread)
    made = {f"CREATE DATABASE IF NOT EXISTS {name};" for name in ("errors", "errors_all")}
    assert made <= set(sql.splitlines())
    repeated = re.compile(r"CREATE (DATABASE IF NOT EXISTS|SETTINGS PROFILE OR REPLACE|USER IF NOT EXISTS) ")
    assert all(repeated.match(line) for line in sql.splitlines() if line.startswith("CREATE"))
    for user in ("svc_operator", "svc", "svc_reader"):
        assert f"GRANT SELECT ON errors_all.* TO {user};" in sql
    groups = set(re.findall(r"--group (\S+)", printed(tmp_path, "kafka", **spread)))
    assert {"team-writer", "team-writer-records-1", "team-writer-records-2"} <= groups
    values = printed(tmp_path, "helm", **spread)
    assert "SVC_CLICKHOUSE_CLUSTER: events" in values
    assert "SVC_CLICKHOUSE_URL" not in values
    assert "| ClickHouse | ClickHouse | 9440 |" in printed(tmp_path, "page", **spread)
    cluster = ElementTree.fromstring(printed(tmp_path, "cluster", **spread))
    assert [one.findtext("replica/host") for one in cluster.findall("remote_servers/events/shard")] == [
        "ch1.example.org",
        "ch2.example.org",
    ]
    assert {one.text for one in cluster.iter("port")} == {"9440"}
    assert "another secret" not in values
