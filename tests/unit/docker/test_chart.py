"""The Helm chart and the alert rules. They need helm and promtool."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from prometheus_client import CollectorRegistry

from cli.__main__ import COMMANDS
from dashboard.http.http_metrics import DashboardMetrics
from edge.edge_metrics import EdgeMetrics
from notify.notify_metrics import NotifyMetrics
from processors.processors_metrics import ProcessorsMetrics
from schemas.environment import is_secret, variables
from schemas.settings import (
    DashboardSettings,
    EdgeSettings,
    KafkaSettings,
    MigrateSettings,
    NotifySettings,
    ProcessorsSettings,
    WriterSettings,
)
from storage.write.writer_metrics import WriterMetrics
from tests.programs import program

ROOT = Path(__file__).parents[3]
CHART = ROOT / "docker" / "chart"
ALERTS = CHART / "files" / "alerts.yaml"
CASES = Path(__file__).parent / "alerts"


def secrets() -> set[str]:
    return {name for name, field in variables().items() if is_secret(field)}


KUBERNETES = ("1.27", "1.30", "1.34", "1.37")
"""The oldest that Chart.yaml admits, the newest, and some between."""
EVERYTHING = {
    "podMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True},
    "networkPolicy": {"enabled": True, "edgePorts": [6379], "notifyPorts": [25]},
    "certificates": "certificates",
    "priorityClassName": "high",
    "nodeSelector": {"pool": "errors"},
    "tolerations": [{"key": "errors", "operator": "Exists"}],
    "image": {"pullSecrets": [{"name": "registry"}]},
    "settings": {"SVC_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "SVC_KAFKA_CA_FILE": "/certificates/ca.pem"},
    "secret": {"name": "given", "keys": ["SVC_KAFKA_PASSWORD", "SVC_CLICKHOUSE_URL"]},
    "migrate": {"secret": {"name": "operator", "keys": ["SVC_CLICKHOUSE_URL"]}},
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"example.org/team": "errors"},
    "podLabels": {"team": "errors"},
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "processors": {
        "tolerations": [{"key": "processors", "operator": "Exists"}],
        "nodeSelector": {"pool": "large"},
        "podAnnotations": {"example.org/team": "processors"},
        "extraEnv": [{"name": "MALLOC_ARENA_MAX", "value": "2"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    },
    "edge": {
        "service": {"type": "LoadBalancer", "annotations": {"example.org/internal": "true"}},
        "autoscaling": {"enabled": True},
        "ingress": {"enabled": True, "className": "nginx", "host": "errors.example.org", "tlsSecret": "tls"},
        "storage": {"className": "fast"},
    },
    "writer": {"keda": {"enabled": True, "authentication": "kafka"}},
    "dashboard": {"ingress": {"enabled": True, "host": "dashboard.example.org"}},
    "notify": {"replicas": 2, "secret": {"name": "channels", "keys": ["SVC_NOTIFY_CHANNELS"]}},
}
EVERYBODY: dict[str, Any] = {"secret": {"name": "svc", "keys": sorted(secrets())}}
"""One Secret with every secret there is."""
AS_IT_IS: dict[str, Any] = {"secret": {"name": "svc", "keys": ["SVC_CLICKHOUSE_URL", "SVC_NOTIFY_CHANNELS"]}}
"""With channels, without which no notify would run."""
PORTS = {"edge": 8080, "dashboard": 8081, "processors": 8082, "writer": 8083, "notify": 8084}


def render(folder: Path, values: Mapping[str, Any], version: str = KUBERNETES[-1]) -> list[dict[str, Any]]:
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    command = [
        program("helm"),
        "template",
        "errors",
        str(CHART),
        "--kube-version",
        version,
        "--values",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The specification of each process's pod, by process."""
    for one in objects:
        if template := one.get("spec", {}).get("template"):
            yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]


@pytest.fixture(scope="module", params=["as it is", "everything"])
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    values = EVERYTHING if request.param == "everything" else AS_IT_IS
    return render(tmp_path_factory.mktemp("chart"), values)


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [{}, AS_IT_IS, EVERYTHING], ids=["nothing", "as it is", "everything"])
def test_kubernetes_knows_every_object(values: dict[str, Any], version: str, tmp_path: Path) -> None:
    for one in render(tmp_path, values, version):
        if one["apiVersion"].split("/")[0] not in {"monitoring.coreos.com", "keda.sh"}:
            kubernetes_validate.validate(one, version, strict=True)


def test_each_process_runs_its_command_and_none_can_write_to_its_root(objects: list[dict[str, Any]]) -> None:
    found = dict(pods(objects))
    assert set(found) == {*PORTS, "migrate"}
    for name, pod in found.items():
        [container] = pod["containers"]
        assert container["args"] == [name]
        assert name in COMMANDS
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["enableServiceLinks"]
        assert "memory" in container["resources"]["limits"]
        mounts = {one["mountPath"] for one in container["volumeMounts"]}
        assert {"/data", "/tmp", "/dev/shm"} <= mounts


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "svc.grouped"),
        ({"SVC_TOPIC_PREFIX": "a."}, "a.grouped"),
        ({"SVC_TOPIC_PREFIX": "a.", "SVC_TOPIC_NAMES": "grouped-events=x, grouped = y,events=z"}, "y"),
        ({"SVC_TOPIC_NAMES": "grouped-events=x"}, "svc.grouped"),
    ],
)
def test_writers_are_scaled_by_the_topic_that_they_read(
    settings: dict[str, str], name: str, tmp_path: Path
) -> None:
    values = {"writer": {"keda": {"enabled": True}}, "settings": settings}
    [scaled] = [one for one in render(tmp_path, values) if one["kind"] == "ScaledObject"]
    assert [trigger["metadata"]["topic"] for trigger in scaled["spec"]["triggers"]] == [name]


def test_without_channels_nothing_of_notify_is_there(tmp_path: Path) -> None:
    found = [one["metadata"]["name"] for one in render(tmp_path, {"networkPolicy": {"enabled": True}})]
    assert "errors-dashboard" in found
    assert "errors-notify" not in found


def test_only_notify_reaches_the_ports_of_channels(tmp_path: Path) -> None:
    reached = {
        one["metadata"]["name"].removeprefix("errors-"): {
            port["port"] for rule in one["spec"]["egress"] for port in rule.get("ports", ())
        }
        for one in render(tmp_path, EVERYTHING)
        if one["kind"] == "NetworkPolicy"
    }
    assert {name for name, ports in reached.items() if 25 in ports} == {"notify"}
    assert reached["notify"] == {53, 9092, 8123, 8443, 25}


def test_a_policy_lets_in_who_is_named_and_out_to_where_tokens_are(tmp_path: Path) -> None:
    proxy = {"podSelector": {"matchLabels": {"app": "nginx"}}}
    prometheus: dict[str, Any] = {"namespaceSelector": {}}
    values = {
        "networkPolicy": {"enabled": True, "edgeFrom": [proxy], "metricsFrom": [prometheus]},
        "settings": {"SVC_KAFKA_TOKEN_URL": "https://login.example.org/token"},
    }
    policies = {
        one["metadata"]["name"].removeprefix("errors-"): one["spec"]
        for one in render(tmp_path, values)
        if one["kind"] == "NetworkPolicy"
    }
    ours = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "errors"}}}
    peers = {name: [rule.get("from") for rule in one["ingress"]] for name, one in policies.items()}
    assert peers == {
        "edge": [[ours, prometheus], [proxy]],
        "processors": [[ours, prometheus]],
        "writer": [[ours, prometheus]],
        "dashboard": [[ours, prometheus], None],
    }
    for one in policies.values():
        assert 443 in {port["port"] for rule in one["egress"] for port in rule.get("ports", ())}
        assert [rule["to"] for rule in one["egress"] if "ports" not in rule] == [[ours]]


STRUCTS: dict[str, type[KafkaSettings]] = {
    "migrate": MigrateSettings,
    "edge": EdgeSettings,
    "processors": ProcessorsSettings,
    "writer": WriterSettings,
    "dashboard": DashboardSettings,
    "notify": NotifySettings,
}


def test_a_process_gets_the_secrets_that_it_reads_and_no_others(tmp_path: Path) -> None:
    for name, pod in pods(render(tmp_path, EVERYBODY)):
        read = {f"SVC_{field.upper()}" for field in STRUCTS[name].__struct_fields__} & secrets()
        [mounted] = [one["secret"]["items"] for one in pod["volumes"] if one["name"] == "secrets"]
        assert {item["key"] for item in mounted} == read


def test_values_of_a_process_win_over_those_for_all(tmp_path: Path) -> None:
    found = {
        one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["template"]
        for one in render(tmp_path, EVERYTHING)
        if one.get("spec", {}).get("template")
    }
    for name, pod in found.items():
        own = name == "processors"
        assert pod["metadata"]["annotations"]["example.org/team"] == ("processors" if own else "errors")
        assert pod["metadata"]["labels"]["team"] == "errors"
        assert pod["spec"]["nodeSelector"] == {"pool": "large" if own else "errors"}
        assert [one["key"] for one in pod["spec"]["tolerations"]] == ["processors" if own else "errors"]
        given = {one["name"] for one in pod["spec"]["containers"][0]["env"]}
        assert {"TZ", "MALLOC_ARENA_MAX"} & given == ({"TZ", "MALLOC_ARENA_MAX"} if own else {"TZ"})


def test_a_platform_may_choose_the_user_and_an_image_its_digest(tmp_path: Path) -> None:
    digest = f"sha256:{'0' * 64}"
    values = {
        "image": {"digest": digest},
        "podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup")),
        "serviceAccount": {"create": False, "name": "given"},
        "fullnameOverride": "faults",
    }
    objects = render(tmp_path, values)
    assert "ServiceAccount" not in {one["kind"] for one in objects}
    assert all(one["metadata"]["name"].startswith("faults-") for one in objects)
    for name, pod in pods(objects):
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert pod["containers"][0]["image"] == f"svc-service@{digest}"
        assert name == "migrate" or pod["serviceAccountName"] == "given"
    names = {one["metadata"]["name"] for one in render(tmp_path, {"nameOverride": "faults"})}
    assert all(name.startswith("errors-faults") for name in names)


def test_the_service_that_names_the_pods_of_a_set_is_headless(objects: list[dict[str, Any]]) -> None:
    services = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Service"}
    governing = [one["spec"]["serviceName"] for one in objects if one["kind"] == "StatefulSet"]
    assert len(governing) == 3
    assert {services[name].get("clusterIP") for name in governing} == {"None"}


def test_every_setting_exists_and_secrets_come_from_files(objects: list[dict[str, Any]]) -> None:
    known = variables()
    plain = [
        key for one in objects if one["kind"] == "ConfigMap" for key in one["data"] if key[-5:] != ".json"
    ]
    for _, pod in pods(objects):
        for given in pod["containers"][0]["env"]:
            name = given["name"]
            if name in {"TZ", "MALLOC_ARENA_MAX"}:
                continue
            if name in known:
                plain.append(name)
                continue
            secret = name.removesuffix("_FILE")
            assert given["value"] == f"/secrets/{secret}"
            assert is_secret(known[secret])
    assert not [name for name in plain if is_secret(known[name])]


def test_probes_services_and_policies_reach_the_port_that_the_process_listens_on(
    objects: list[dict[str, Any]],
) -> None:
    for name, pod in pods(objects):
        if name == "migrate":
            continue
        [container] = pod["containers"]
        assert container["ports"] == [{"name": "http", "containerPort": PORTS[name]}]
        given = {one["name"]: one.get("value") for one in container["env"]}
        assert str(PORTS[name]) in given.values()
        assert "0.0.0.0" in given.values()
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    services = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Service"}
    assert {name: services[f"errors-{name}"]["ports"][0]["port"] for name in PORTS} == PORTS


def test_the_spool_is_on_a_volume_that_outlives_its_pod(objects: list[dict[str, Any]]) -> None:
    [edge] = [
        one for one in objects if one["kind"] == "StatefulSet" and one["metadata"]["name"].endswith("edge")
    ]
    assert [claim["metadata"]["name"] for claim in edge["spec"]["volumeClaimTemplates"]] == ["data"]
    assert set(edge["spec"]["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    assert "data" not in [one["name"] for one in edge["spec"]["template"]["spec"]["volumes"]]


def test_workers_keep_their_names(objects: list[dict[str, Any]]) -> None:
    for name in ("processors", "writer"):
        [container] = dict(pods(objects))[name]["containers"]
        named = {one["name"]: one for one in container["env"]}[f"SVC_{name.upper()}_WORKER"]
        assert named["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_the_internet_reaches_the_ingest_paths_of_the_edge_alone(tmp_path: Path) -> None:
    paths = {
        one["metadata"]["name"]: one["spec"]["rules"][0]["http"]["paths"][0]["path"]
        for one in render(tmp_path, EVERYTHING)
        if one["kind"] == "Ingress"
    }
    assert paths == {"errors-edge": "/v1", "errors-dashboard": "/"}


@pytest.mark.parametrize(
    "values",
    [
        {"edge": {"replica": 3}},
        {"settings": {"KAFKA": "x"}},
        {"secret": {"keys": ["password"]}},
        {"writers": {}},
    ],
    ids=[
        "a misspelt value",
        "a setting without our prefix",
        "a key that is no setting",
        "an unknown process",
    ],
)
def test_a_mistake_in_the_values_is_refused(values: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="values don't meet the specifications"):
        render(tmp_path, values)


def test_promtool_takes_the_alert_rules() -> None:
    done = subprocess.run(
        [program("promtool"), "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("case", sorted(CASES.glob("*.yaml")), ids=lambda path: str(path.stem))
def test_alerts_fire_for_each_case_and_only_for_it(case: Path) -> None:
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(case)], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout + done.stderr


def test_each_runbook_has_the_address_of_the_values(tmp_path: Path) -> None:
    rule = {"enabled": True, "runbooks": "https://errors.example.org/"}
    [found] = [one for one in render(tmp_path, {"prometheusRule": rule}) if one["kind"] == "PrometheusRule"]
    pages = [
        rule["annotations"]["runbook_url"]
        for group in found["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert len(pages) == len(alerts())
    assert all(page.startswith("https://errors.example.org/docs/operate/") for page in pages)


def series(bad: str, good: str, samples: int, share: str) -> list[dict[str, str]]:
    """A hundred requests from sample to sample of which so many are bad; promtool's words for a counter."""
    return [
        {"series": bad, "values": f"0+{share}x{samples}"},
        {"series": good, "values": f"0+100x{samples}"},
    ]


@pytest.mark.parametrize(
    ("share", "fast", "slow"), [("3", True, True), ("0.5", False, True), ("0.05", False, False)]
)
def test_objectives_page_for_a_fast_loss_and_write_a_ticket_for_a_slow_one(
    tmp_path: Path, share: str, fast: bool, slow: bool
) -> None:
    samples, dashboard = 4 * 24 * 30, "svc_dashboard_requests_total{route='/issues/{issue}'"
    late = "svc_writer_event_age_seconds"
    input_series = [
        *series("svc_edge_requests_total{endpoint='/v1/events',status='503'}",
                "svc_edge_requests_total{endpoint='/v1/events',status='202'}", samples, share),
        *series(f"{dashboard},status='503'}}", f"{dashboard},status='200'}}", samples, f"{float(share) * 5}"),
        # Health checks don't count as requests.
        *series("svc_edge_requests_total{endpoint='/readyz',status='503'}",
                "svc_edge_requests_total{endpoint='/readyz',status='200'}", samples, "90"),
        {"series": f"{late}_bucket{{le='10.0'}}", "values": f"0+{100 - float(share) * 10}x{samples}"},
        {"series": f"{late}_count", "values": f"0+100x{samples}"},
    ]  # fmt: skip
    expected = [
        f'ALERTS{{alertname="{alert}{suffix}", alertstate="firing", severity="{severity}"}}'
        for alert in ("SvcAcceptance", "SvcFreshness", "SvcReading")
        for suffix, severity, fires in (("BurnsFast", "page", fast), ("Burns", "ticket", slow))
        if fires
    ]
    firing = {
        "expr": 'ALERTS{alertname=~".*Burns.*"}',
        "eval_time": "4d",
        "exp_samples": [{"labels": alert, "value": 1} for alert in expected],
    }
    file = tmp_path / "test.yaml"
    tests = [{"interval": "2m", "input_series": input_series, "promql_expr_test": [firing]}]
    file.write_text(
        yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "30m", "tests": tests})
    )
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout + done.stderr


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def rules() -> list[dict[str, Any]]:
    """Alerts, and the figures that are recorded for them."""
    return [
        rule for group in yaml.load(ALERTS.read_text(), yaml.CSafeLoader)["groups"] for rule in group["rules"]
    ]


def queries() -> Iterator[str]:
    """Those of the dashboards."""
    for path in sorted((CHART / "files" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))


def test_every_metric_of_alerts_and_dashboards_exists() -> None:
    others = CollectorRegistry()
    ProcessorsMetrics(others)
    WriterMetrics(others)
    NotifyMetrics(others)
    known = {"svc_writer_event_age_seconds_count"}
    for family in (
        *EdgeMetrics().registry.collect(),
        *DashboardMetrics().registry.collect(),
        *others.collect(),
    ):
        known |= {family.name, f"{family.name}_total", f"{family.name}_bucket"}
    used = {
        name
        for text in (*(rule["expr"] for rule in rules()), *queries())
        for name in re.findall(r"\bsvc_\w+", text)
    }
    assert used <= known


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_leads_to_a_page_and_monitor_names_it(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert not anchor or anchor in slugs
    assert f"`{rule['alert']}`" in (ROOT / "docs" / "operate" / "monitor.md").read_text()
