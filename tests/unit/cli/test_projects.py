"""`svc projects update`: owners and the link to the source are replaced as a whole, and removed."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner

from cli.__main__ import svc
from control.project_edits import create
from tests.unit.cli.test_issues import NOWHERE
from tests.unit.dashboard.projects import MemoryProjects


def test_owners_and_the_link_are_replaced_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    projects = MemoryProjects(create("shop", now_ms=0))
    monkeypatch.setattr("cli.projects.ProjectStore", lambda _: nullcontext(projects))

    def changed(*options: str) -> dict[str, Any]:
        done = CliRunner().invoke(svc, ["projects", "update", "shop", "--json", *options], env=NOWHERE)
        assert done.exit_code == 0, done.output
        answer: dict[str, Any] = json.loads(done.output)
        return answer

    template = "https://git.example/{release}/{file}"
    project = changed("--owner", "file:a*", "zoe", "--owner", "", "ann", "--link-template", template)
    assert project["owners"] == [{"match": "file:a*", "assignee": "zoe"}, {"match": "", "assignee": "ann"}]
    assert project["linkTemplate"] == template
    project = changed("--owner", "", "", "--link-template", "")
    assert (project["owners"], project["linkTemplate"]) == ([], "")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--owner", "file:(", "zoe"], "owners[0].match"), (["--link-template", "git/{file}"], "linkTemplate")],
)
def test_what_is_wrong_is_named(options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = MemoryProjects(create("shop", now_ms=0))
    monkeypatch.setattr("cli.projects.ProjectStore", lambda _: nullcontext(projects))
    done = CliRunner().invoke(svc, ["projects", "update", "shop", *options], env=NOWHERE)
    assert done.exit_code == 1
    assert message in done.output
