"""Settings come from the environment, wholly and with clear complaints."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from broker.client import topic_names
from schemas import environment, settings
from schemas.errors import BadSetting
from schemas.service_variables import service_variables
from schemas.topics import Topic
from storage.shards import reader_urls, shards_of, whole_url


def test_values_are_converted_to_their_types() -> None:
    edge = environment.load(settings.EdgeSettings, {"SVC_INGEST_PORT": "9", "SVC_EDGE_HEAD_SECONDS": "2.5"})
    assert (edge.ingest_port, edge.edge_head_seconds) == (9, 2.5)


def test_processors_writer_and_notify_answer_health_on_one_address() -> None:
    given = {"SVC_HEALTH_HOST": "0.0.0.0"}
    assert environment.load(settings.ProcessorsSettings, {}).health_host == "127.0.0.1"
    assert environment.load(settings.ProcessorsSettings, given).health_host == "0.0.0.0"
    assert environment.load(settings.WriterSettings, given).health_host == "0.0.0.0"
    assert environment.load(settings.NotifySettings, given).health_host == "0.0.0.0"


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"SVC_INGEST_PROT": "1"}, "SVC_INGEST_PROT"),
        ({"SVC_INGEST_PORT": "http"}, "SVC_INGEST_PORT"),
        ({"SVC_INGEST_PORT": "65536"}, "SVC_INGEST_PORT"),
        ({"SVC_LOG_LEVEL": "loud"}, "SVC_LOG_LEVEL"),
        ({"SVC_INGEST_PORT_FILE": "/nonexistent"}, "SVC_INGEST_PORT_FILE"),
        ({"SVC_NO_SUCH_FILE": "/nonexistent"}, "SVC_NO_SUCH"),
    ],
)
def test_a_bad_variable_is_named_in_one_line(environ: dict[str, str], name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        environment.load(settings.EdgeSettings, environ)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_required_variable_that_is_missing_is_named() -> None:
    with pytest.raises(BadSetting, match="SVC_ADMIN_PASSWORD is required"):
        environment.load(settings.DashboardSettings, {})


def test_a_value_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    loaded = environment.load(
        settings.DashboardSettings, {"SVC_ADMIN_PASSWORD_FILE": str(tmp_path / "password")}
    )
    assert loaded.admin_password == "s3cret"


def test_settings_of_another_process_are_known_and_others_variables_passed_over() -> None:
    environ = {"SVC_ADMIN_PASSWORD": "x", "SVC_TOKEN": "t", "HOME": "/"}
    assert environment.load(settings.EdgeSettings, environ) == environment.load(settings.EdgeSettings, {})


def test_every_variable_has_a_description() -> None:
    for name, field in environment.variables().items():
        assert environment.description(field), name


def test_topics_can_be_named_whole_and_the_others_have_the_prefix() -> None:
    given = {"SVC_TOPIC_NAMES": " events = In.Team_1-a, grouped=g", "SVC_TOPIC_PREFIX": "x."}
    names = topic_names(environment.load(settings.EdgeSettings, given))
    assert (names[Topic.EVENTS], names[Topic.GROUPED]) == ("In.Team_1-a", "g")
    others = names.keys() - {Topic.EVENTS, Topic.GROUPED}
    assert {names[topic] for topic in others} == {f"x.{topic.title}" for topic in others}
    every = ",".join(f"{topic.title}=my-{topic.title}" for topic in Topic)
    loaded = environment.load(settings.WriterSettings, {"SVC_TOPIC_NAMES": every})
    assert topic_names(loaded) == {topic: f"my-{topic.title}" for topic in Topic}
    assert environment.load(settings.EdgeSettings, {"SVC_TOPIC_NAMES": " "}).topic_overrides == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("event=a", "SVC_TOPIC_NAMES: no topic 'event'; the topics are events, grouped, "),
        ("=a", "SVC_TOPIC_NAMES: no topic ''"),
        ("events", "SVC_TOPIC_NAMES: 'events' is not of the form TOPIC=NAME"),
        ("events=a,", "SVC_TOPIC_NAMES: '' is not of the form TOPIC=NAME"),
        ("events=a,events=b", "SVC_TOPIC_NAMES names events twice"),
        ("events=", "SVC_TOPIC_NAMES: events can't be ''"),
        ("events=a b", "SVC_TOPIC_NAMES: events can't be 'a b'"),
        ("events=a\nb", r"SVC_TOPIC_NAMES: events can't be 'a\nb'"),
        ("events=a=b", "SVC_TOPIC_NAMES: events can't be 'a=b'"),
        ("events=ä", "SVC_TOPIC_NAMES: events can't be 'ä'"),
        ("events=..", "SVC_TOPIC_NAMES: events can't be '..'"),
        (f"events={'a' * 250}", "SVC_TOPIC_NAMES: events can't be 'aaa"),
        ("events=a,seen=a", "SVC_TOPIC_NAMES: events and seen would both be a"),
        ("events=a.b,seen=a_b", "SVC_TOPIC_NAMES: events and seen would both be a_b"),
        ("events=svc.seen", "SVC_TOPIC_NAMES: events and seen would both be svc.seen"),
    ],
)
def test_names_of_topics_that_kafka_would_not_take_or_that_are_wrong_are_refused(
    text: str, message: str
) -> None:
    with pytest.raises(BadSetting) as refused:
        environment.load(settings.EdgeSettings, {"SVC_TOPIC_NAMES": text})
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_the_longest_name_of_a_topic_is_taken() -> None:
    loaded = environment.load(settings.EdgeSettings, {"SVC_TOPIC_NAMES": f"events={'a' * 249}"})
    assert loaded.topic_overrides["events"] == "a" * 249


@pytest.mark.parametrize(
    "text", ["k:9092", "k", "a.example:1,b_2:65535", " a:1 , b:2", "[::1]:9092", "10.0.0.1:9092"]
)
def test_brokers_are_named_by_host_and_port(text: str) -> None:
    loaded = environment.load(settings.EdgeSettings, {"SVC_KAFKA_BOOTSTRAP": text})
    assert loaded.kafka_bootstrap == text


@pytest.mark.parametrize(
    "text",
    ["localhost:abc", "a:", ":9092", "a:0", "a:65536", "a:1,", "kafka://a:1", "a b:1", "x" * 64 + ":1"],
)
def test_broker_that_can_never_be_reached_is_named(text: str) -> None:
    for struct in (settings.EdgeSettings, settings.ProcessorsSettings, settings.WriterSettings):
        with pytest.raises(BadSetting, match=r"^SVC_KAFKA_BOOTSTRAP: '.*' is not host:port$"):
            environment.load(struct, {"SVC_KAFKA_BOOTSTRAP": text})


def test_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    given = {"SVC_KAFKA_SECURITY_PROTOCOL": "SSL", "SVC_KAFKA_CERTIFICATE_FILE": str(tmp_path / "empty.pem")}
    with pytest.raises(BadSetting, match=r"^SVC_KAFKA_CERTIFICATE_FILE: can't use .*empty\.pem: ."):
        environment.load(settings.EdgeSettings, given)
    with pytest.raises(
        BadSetting, match=r"^SVC_KAFKA_CERTIFICATE_FILE: can't use .*empty\.pem with none\.pem: "
    ):
        environment.load(settings.EdgeSettings, {**given, "SVC_KAFKA_KEY_FILE": "none.pem"})


@pytest.mark.parametrize("url", ["", "tokens.example.org", "ftp://tokens.example.org", "https://"])
def test_tokens_need_the_address_that_issues_them(url: str) -> None:
    given = {"SVC_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "SVC_KAFKA_SASL_MECHANISM": "OAUTHBEARER"}
    with pytest.raises(BadSetting, match=r"^SVC_KAFKA_TOKEN_URL: OAUTHBEARER needs"):
        environment.load(settings.EdgeSettings, {**given, "SVC_KAFKA_TOKEN_URL": url})


def test_ca_file_that_cannot_be_used_is_named_where_it_would_be(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "missing.pem", tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for path in (missing, wrong, tmp_path):
        environ = {"SVC_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "SVC_KAFKA_CA_FILE": str(path)}
        with pytest.raises(BadSetting, match=f"^SVC_KAFKA_CA_FILE: can't use {path}: ."):
            environment.load(settings.EdgeSettings, environ)
        environment.load(settings.EdgeSettings, environ | {"SVC_KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"})


ONE, TWO = "http://u:a@h1:8123/svc", "http://u:b@h2:8123/svc"


def test_several_servers_are_an_ordered_list_and_the_first_is_the_one_address() -> None:
    given = {"SVC_CLICKHOUSE_SHARDS": f"{ONE}, {TWO},", "SVC_CLICKHOUSE_CLUSTER": "events"}
    loaded = environment.load(settings.DashboardSettings, given | {"SVC_ADMIN_PASSWORD": "x"})
    assert (loaded.shard_urls, loaded.clickhouse_url) == ((ONE, TWO), ONE)
    assert [(str(shard), shard.partitions_owned(range(5))) for shard in shards_of(loaded)] == [
        ("1/2", {0, 2, 4}),
        ("2/2", {1, 3}),
    ]
    assert reader_urls(loaded) == (f"{ONE}_all", f"{TWO}_all")
    assert reader_urls(replace(loaded, clickhouse_reader_url="http://r:c@any:1/svc")) == (
        "http://r:c@h1:8123/svc_all",
        "http://r:c@h2:8123/svc_all",
    )


def test_one_server_is_as_it_was() -> None:
    loaded = environment.load(settings.WriterSettings, {"SVC_CLICKHOUSE_URL": "http://u:a,b@h/svc"})
    assert loaded.shard_urls == reader_urls(loaded) == ("http://u:a,b@h/svc",)
    assert whole_url(loaded, loaded.clickhouse_url) == loaded.clickhouse_url
    assert environment.load(settings.WriterSettings, {}).shard_urls == ()


def test_replicas_of_a_server_are_written_to_at_the_first_and_read_at_each() -> None:
    given = {
        "SVC_CLICKHOUSE_SHARDS": "http://w@a/svc | http://w@b/svc, http://w@c/svc",
        "SVC_CLICKHOUSE_CLUSTER": "all",
        "SVC_CLICKHOUSE_READER_URL": "http://r:s@anywhere/svc",
    }
    loaded = environment.load(settings.MigrateSettings, given)
    assert loaded.shard_urls == ("http://w@a/svc?replicas=2", "http://w@c/svc")
    assert loaded.clickhouse_url == loaded.shard_urls[0]
    assert loaded.replica_urls == (
        ("http://w@a/svc?replicas=2", "http://w@b/svc?replicas=2"),
        ("http://w@c/svc",),
    )
    assert [str(shard) for shard in shards_of(loaded)] == ["1/2", "2/2"]
    assert reader_urls(loaded) == (
        "http://r:s@a/svc_all?replicas=2",
        "http://r:s@b/svc_all?replicas=2",
        "http://r:s@c/svc_all",
    )


def test_one_server_with_replicas_needs_no_cluster() -> None:
    given = {"SVC_CLICKHOUSE_SHARDS": "https://a/svc|https://b/svc"}
    loaded = environment.load(settings.MigrateSettings, given)
    assert [str(shard) for shard in shards_of(loaded)] == ["1/1"]
    assert reader_urls(loaded) == ("https://a/svc?replicas=2", "https://b/svc?replicas=2")
    assert whole_url(loaded, loaded.clickhouse_url) == "https://a/svc?replicas=2"


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"SVC_CLICKHOUSE_SHARDS": f"{ONE}|{ONE}"}, "SVC_CLICKHOUSE_SHARDS names a server twice"),
        ({"SVC_CLICKHOUSE_URL": ONE}, "SVC_CLICKHOUSE_URL and SVC_CLICKHOUSE_SHARDS are both set"),
        ({"SVC_CLICKHOUSE_SHARDS": f"{ONE},{ONE}"}, "SVC_CLICKHOUSE_SHARDS names a server twice"),
        ({"SVC_CLICKHOUSE_SHARDS": f"{ONE},{TWO}2"}, "SVC_CLICKHOUSE_SHARDS names several databases"),
        ({"SVC_CLICKHOUSE_CLUSTER": ""}, "SVC_CLICKHOUSE_CLUSTER is required"),
        ({"SVC_CLICKHOUSE_CLUSTER": "a'b"}, "SVC_CLICKHOUSE_CLUSTER"),
    ],
)
def test_a_list_of_servers_that_is_wrong_is_refused(more: dict[str, str], what: str) -> None:
    given = {"SVC_CLICKHOUSE_SHARDS": f"{ONE},{TWO}", "SVC_CLICKHOUSE_CLUSTER": "events"}
    with pytest.raises(BadSetting, match=f"^{what}"):
        environment.load(settings.WriterSettings, given | more)


def test_a_value_and_its_file_together_are_refused_with_both_names(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    both = {"SVC_ADMIN_PASSWORD": "other", "SVC_ADMIN_PASSWORD_FILE": str(tmp_path / "password")}
    with pytest.raises(BadSetting, match="SVC_ADMIN_PASSWORD and SVC_ADMIN_PASSWORD_FILE are both set"):
        environment.load(settings.DashboardSettings, both)
    empty = both | {"SVC_ADMIN_PASSWORD": ""}
    assert environment.load(settings.DashboardSettings, empty).admin_password == "s3cret"


def test_a_setting_whose_own_name_ends_in_file_is_no_variant(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    loaded = environment.load(settings.EdgeSettings, {"SVC_KAFKA_CA_FILE": str(ca)})
    assert loaded.kafka_ca_file == str(ca)


KUBERNETES = {
    "SVC_EDGE_SERVICE_HOST": "10.0.0.1",
    "SVC_EDGE_SERVICE_PORT": "8080",
    "SVC_EDGE_SERVICE_PORT_HTTP": "8080",
    "SVC_EDGE_PORT": "tcp://10.0.0.1:8080",
    "SVC_EDGE_PORT_8080_TCP": "tcp://10.0.0.1:8080",
    "SVC_EDGE_PORT_8080_TCP_PROTO": "tcp",
    "SVC_EDGE_PORT_8080_TCP_PORT": "8080",
    "SVC_EDGE_PORT_8080_TCP_ADDR": "10.0.0.1",
    "SVC_DASHBOARD_SERVICE_HOST": "fd00::1",
    "SVC_DASHBOARD_PORT": "tcp://[fd00::1]:8081",
    "SVC_SERVICE_HOST": "10.0.0.2",
    "SVC_PORT": "tcp://10.0.0.2:80",
}


def test_variables_of_kubernetes_services_are_passed_over() -> None:
    loaded = environment.load(settings.DashboardSettings, KUBERNETES | {"SVC_ADMIN_PASSWORD": "x"})
    assert loaded.dashboard_port == 8081
    assert service_variables(KUBERNETES) == sorted(KUBERNETES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVC_EDGE_PORT", "8080"),
        ("SVC_EDGE_PORT", "http://10.0.0.1:8080"),
        ("SVC_EDGE_PORT_TCP", "tcp"),
        ("SVC_DASHBOARD_PORT", "tcp://10.0.0.1"),
        ("SVC_INGEST_HOSTS", "10.0.0.1"),
    ],
)
def test_a_variable_that_only_looks_like_a_service_variable_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=name):
        environment.load(settings.DashboardSettings, {"SVC_ADMIN_PASSWORD": "x", name: value})
