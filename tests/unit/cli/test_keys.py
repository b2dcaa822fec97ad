"""`svc keys`: creates, lists and revokes keys of a project and of all."""

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.__main__ import svc
from control.project_edits import create
from schemas.projects import key_hash
from tests.unit.cli.test_issues import NOWHERE
from tests.unit.dashboard.projects import MemoryProjects


@pytest.mark.parametrize("options", [[], ["--project", "shop"]])
def test_a_key_is_created_listed_and_revoked(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    projects = MemoryProjects(create("shop", now_ms=0))
    monkeypatch.setattr("cli.projects.ProjectStore", lambda _: nullcontext(projects))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(svc, ["keys", *arguments, *options], env=NOWHERE)

    def listed() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = msgspec.json.decode(run("list", "--json").output)
        return rows

    create_ci = ["create", "ci", "--scope", "write", "--scope", "read", "--by", "ann"]
    secret = run(*create_ci).output.strip()
    owner, key = projects.registry.keys[key_hash(secret)]
    assert (owner.name, key.name, key.created_by) == ("shop" if options else "", "ci", "ann")
    [row] = listed()
    assert (row["id"], row["scopes"], row["revokedAt"]) == (key.id, ["read", "write"], None)
    assert "hash" not in row
    again = run(*create_ci)
    assert (again.exit_code, "another key has this name" in again.output) == (1, True)
    assert run("revoke", key.id).exit_code == 0
    assert listed()[0]["revokedAt"]
    assert " ci " in run("list").output
    unknown = run("revoke", "0" * 16)
    assert (unknown.exit_code, "no key with this id" in unknown.output) == (1, True)
