"""The compose file's references, checked without a container engine."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from cli.__main__ import COMMANDS
from local.kafka.downloads import KAFKA_VERSION
from schemas.environment import variables

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docker" / "compose.yml"
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


class Loader(yaml.SafeLoader):
    """Reads Compose's tag for a list that replaces the one before."""


def _replacing(loader: Loader, node: yaml.SequenceNode) -> list[Any]:
    found: list[Any] = loader.construct_sequence(node, deep=True)
    return found


Loader.add_constructor("!override", _replacing)


@pytest.fixture(scope="module")
def cluster() -> dict[str, Any]:
    """The file that is read after `compose.yml`."""
    text = FILE.with_name("compose.cluster.yml").read_text()
    found: dict[str, Any] = yaml.load(text, Loader)
    return found


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose["services"].items() if "build" in service}


def test_each_of_our_processes_has_a_service_that_runs_a_command_of_svc(compose: dict[str, Any]) -> None:
    assert set(ours(compose)) == {"migrate", "edge", "processors", "writer", "dashboard", "notify"}
    for service in ours(compose).values():
        assert service["command"][0] in COMMANDS
        assert (FILE.parent / service["build"]["context"] / service["build"]["dockerfile"]).exists()


def test_every_setting_in_it_exists(compose: dict[str, Any]) -> None:
    given = {name for service in ours(compose).values() for name in service["environment"]}
    assert given <= set(variables())


def test_containers_and_the_local_broker_run_the_same_kafka(compose: dict[str, Any]) -> None:
    assert compose["services"]["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert f"<version>{KAFKA_VERSION}</version>" in (ROOT / "local" / "kafka" / "pom.xml").read_text()


def test_every_volume_and_dependency_that_is_named_exists(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert set(service.get("depends_on", {})) <= set(compose["services"])
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in compose["volumes"]


def test_only_our_two_ports_are_reachable_from_outside(compose: dict[str, Any]) -> None:
    published = {name for name, service in compose["services"].items() if "ports" in service}
    assert published == {"edge", "dashboard"}
    for name in published:
        [port] = compose["services"][name]["ports"]
        assert port.startswith("${BIND_ADDRESS:-127.0.0.1}:")


def test_our_processes_can_write_to_their_data_alone_and_have_no_privileges(compose: dict[str, Any]) -> None:
    for service in ours(compose).values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_programs_that_build_the_image_are_pinned() -> None:
    locked = dict(PINNED.findall((ROOT / "docker" / "build-requirements.txt").read_text()))
    for folder in (ROOT, ROOT / "svc"):
        system = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]
        for requirement in map(Requirement, system["requires"]):
            assert requirement.specifier.contains(locked[requirement.name])
    lines = (ROOT / "docker" / "Dockerfile").read_text().splitlines()
    [own] = [line for line in lines if "pip wheel" in line and ".txt" not in line]
    assert "--no-build-isolation" in own


def test_the_image_has_the_requirements_of_the_project_in_allowed_versions() -> None:
    locked = dict(PINNED.findall((ROOT / "docker" / "requirements.txt").read_text()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # SVC_RATE_LIMIT_STORE needs an extra, which cannot be added to an image.
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["rate-limit-store"]]
    for requirement in map(Requirement, wanted):
        if requirement.name != "svc-reporting":
            assert requirement.specifier.contains(locked[requirement.name]), requirement


def test_the_cluster_adds_to_services_that_there_are(
    compose: dict[str, Any], cluster: dict[str, Any]
) -> None:
    known, volumes = compose["services"].keys(), {*compose["volumes"], *cluster["volumes"]}
    for name, service in cluster["services"].items():
        base = service.get("extends")
        assert base["service"] in known if base else name in known
        assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= volumes
        assert set(service.get("depends_on", {})) <= cluster["services"].keys()


def test_the_cluster_is_of_servers_that_there_are(cluster: dict[str, Any]) -> None:
    services, given = cluster["services"], cluster["x-addresses"]
    assert set(given) <= set(variables())
    brokers = [broker.partition(":")[0] for broker in given["SVC_KAFKA_BOOTSTRAP"].split(",")]
    assert set(brokers) <= services.keys()
    assert (
        len(brokers)
        == given["SVC_TOPIC_REPLICATION"]
        == len(re.findall(r"\d@", cluster["x-broker"]["KAFKA_CONTROLLER_QUORUM_VOTERS"]))
    )
    shards = re.findall(r"@(\w+):8123/svc", given["SVC_CLICKHOUSE_SHARDS"])
    assert re.findall(r"<host>(\w+)</host>", cluster["configs"]["cluster"]["content"]) == shards
    assert all(services[shard]["configs"] for shard in shards)
    assert given["SVC_TOPIC_PARTITIONS"] % len(shards) == 0


def test_docker_folder_does_not_hide_the_sdk_of_that_name() -> None:
    assert not (ROOT / "docker" / "__init__.py").exists()
