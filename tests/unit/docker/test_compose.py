"""The compose file's references, checked without a container engine."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.__main__ import COMMANDS
from local.kafka.downloads import KAFKA_VERSION
from schemas.environment import variables

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docker" / "compose.yml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose["services"].items() if "build" in service}


def test_each_of_our_processes_has_a_service_that_runs_a_command_of_svc(compose: dict[str, Any]) -> None:
    assert set(ours(compose)) == {"migrate", "edge", "processors", "writer", "dashboard"}
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


def test_the_image_can_use_every_setting_of_a_process() -> None:
    # SVC_RATE_LIMIT_STORE needs an extra, which nobody can add to an image.
    assert "'.[rate-limit-store]'" in (FILE.parent / "Dockerfile").read_text()


def test_docker_folder_does_not_hide_the_sdk_of_that_name() -> None:
    assert not (ROOT / "docker" / "__init__.py").exists()
