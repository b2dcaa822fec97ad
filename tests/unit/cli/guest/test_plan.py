"""`svc guest plan` asks for what the code uses, under the deployment's names, in each form."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from broker.rights import needs, rights_of
from cli.__main__ import svc
from cli.guest.formats import FORMATS
from schemas.settings import KafkaSettings
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
SETTINGS = KafkaSettings(topic_prefix="team-errors.", topic_names="events=Errors_In")
RIGHTS = {
    (f"svc-{process}", right.kind, right.name, right.operation)
    for process, need in needs(
        "team-processors",
        "team-writer",
        grouped_events=False,
        prefix="team-errors.",
        notify_group="team-notify",
    ).items()
    for right in rights_of(need, SETTINGS)
} | {("svc-operator", "topic", "team-errors.", "Create")}
TOPICS = {
    spec.name: (spec.partitions, spec.replication, spec.configs)
    for spec in topic_specs("team-errors.", {"events": "Errors_In"}, 12, 3)
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
    topics, rights = {}, set()
    for line in printed(tmp_path, "kafka").splitlines():
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
        [user] = given["--allow-principal"]
        kind = "topic" if "--topic" in given else "group"
        assert ("--resource-pattern-type" in given) == (given["--operation"] == ["Create"])
        rights |= {
            (user.removeprefix("User:"), kind, given[f"--{kind}"][0], operation)
            for operation in given["--operation"]
        }
    assert topics == TOPICS
    assert rights == RIGHTS


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
        if name not in {"SVC_KAFKA_PASSWORD", "SVC_CLICKHOUSE_URL", "SVC_NOTIFY_CHANNELS"}
    }
    assert "SVC_KAFKA_PASSWORD" in values["secret"]["keys"]
    assert values["edge"]["secret"]["keys"] == ["SVC_KAFKA_PASSWORD"]


def test_only_notify_gets_the_addresses_of_its_channels(tmp_path: Path) -> None:
    values = yaml.safe_load(printed(tmp_path, "helm"))
    assert values["notify"]["secret"]["keys"] == [
        "SVC_KAFKA_PASSWORD",
        "SVC_NOTIFY_CHANNELS",
        "SVC_CLICKHOUSE_READER_URL",
    ]
    assert "SVC_NOTIFY_CHANNELS" not in values["secret"]["keys"]
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
    assert {"CREATE DATABASE errors;", "CREATE DATABASE errors_all;"} <= set(sql.splitlines())
    for user in ("svc_operator", "svc", "svc_reader"):
        assert f"GRANT SELECT ON errors_all.* TO {user};" in sql
    groups = set(re.findall(r"--group (\S+)", printed(tmp_path, "kafka", **spread)))
    assert {"team-writer", "team-writer-records-1", "team-writer-records-2"} <= groups
    values = printed(tmp_path, "helm", **spread)
    assert "SVC_CLICKHOUSE_CLUSTER: events" in values
    assert "another secret" not in values
