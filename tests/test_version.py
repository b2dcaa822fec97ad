"""The version is the same wherever it is said."""

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import svc as library
from cli.__main__ import svc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION: str = PROJECT["version"]
JAVASCRIPT = ROOT / "svc-js"
CHART = yaml.safe_load((ROOT / "docker/chart/Chart.yaml").read_text(encoding="utf-8"))
TAG = re.compile(r"(?:svc-service:|svc_reporting-|svc-js[-/])(\d+\.\d+\.\d+)")


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("the library", library.__version__),
        (
            "the JavaScript package",
            json.loads((JAVASCRIPT / "package.json").read_text(encoding="utf-8"))["version"],
        ),
        (
            "its module",
            re.findall(r'VERSION = "(.+)"', (JAVASCRIPT / "svc.js").read_text(encoding="utf-8"))[0],
        ),
        ("the chart", CHART["version"]),
        ("the chart's images", CHART["appVersion"]),
        ("the installed service", version("svc-service")),
        ("the installed library", version("svc-reporting")),
    ],
)
def test_every_place_says_the_version_of_the_project(where: str, found: str) -> None:
    assert found == VERSION, f"{where}: `make install docs`, or edit it"


def test_the_service_needs_the_library_of_the_same_minor_version() -> None:
    minor = VERSION.rpartition(".")[0]
    assert f"svc-reporting=={minor}.*" in PROJECT["dependencies"]


def test_the_command_says_the_version() -> None:
    assert VERSION in CliRunner().invoke(svc, ["--version"]).output


def test_images_and_wheels_that_pages_name_have_the_version() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docker").rglob("*.y*ml"), ROOT / "README.md"]
    named = {tag for page in pages for tag in TAG.findall(page.read_text(encoding="utf-8"))}
    assert named == {VERSION}
