"""The command `svc` and its subcommands."""

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from cli import __main__
from cli.__main__ import COMMANDS, SECTIONS, LazyGroup, hoisted, svc
from cli.doctor.basic_checks import CORRECT_SETTING
from cli.up import announce, start
from cli.workspace import Workspace
from local.child import Child
from local.discovery import FILE, environment
from local.local_errors import StartError
from local.local_stack import Stack
from local.ports import free_port
from local.private_file import write_private
from tests.unit.local.test_stack import SERVERS

ROOT = Path(__file__).parents[3]


def group() -> LazyGroup:
    assert isinstance(svc, LazyGroup)
    return svc


@pytest.mark.parametrize("name", group().list_commands(click.Context(svc)))
def test_each_listed_subcommand_can_be_loaded_and_explains_itself(name: str) -> None:
    answer = CliRunner().invoke(svc, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert "Usage: svc" in answer.output


def test_unknown_subcommand_is_refused_in_one_sentence() -> None:
    answer = CliRunner().invoke(svc, ["nonsense"])
    assert answer.exit_code == 2
    assert "No such command 'nonsense'" in answer.output


@pytest.mark.parametrize(
    ("words", "nearest"),
    [(["isues"], "issues"), (["issues", "reslove"], "resolve"), (["projects", "token", "ad"], "add")],
)
def test_mistyped_subcommand_is_answered_with_the_nearest(words: list[str], nearest: str) -> None:
    answer = CliRunner().invoke(svc, words)
    assert answer.exit_code == 2
    assert f"No such command '{words[-1]}'. Did you mean '{nearest}'?" in answer.output


def test_doctor_works_where_nothing_runs(tmp_path: Path) -> None:
    answer = CliRunner(env={"SVC_KAFKA_BOOTSTRAP": None, "SVC_CLICKHOUSE_URL": None}).invoke(
        svc, ["doctor", "--data-dir", str(tmp_path)]
    )
    assert answer.exit_code == 1
    assert isinstance(answer.exception, SystemExit), answer.exception
    assert answer.output.count("no address is known") == 2


def test_commands_find_a_start_that_is_under_way_and_not_the_ports_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(tmp_path / FILE, json.dumps({"pid": 1, "environment": {"SVC_INGEST_PORT": "1"}}))
    found: list[dict[str, str]] = []

    def command() -> list[str]:
        found.append(environment(tmp_path, {}))
        raise StartError("enough seen")

    monkeypatch.setattr(Stack, "children", lambda _: [Child("edge", command, tmp_path / "edge.log")])
    # Another `svc up` may have the default ports.
    ports = {name: str(free_port()) for name in ("SVC_INGEST_PORT", "SVC_DASHBOARD_PORT")}
    monkeypatch.setattr("cli.up.os.environ", SERVERS | ports)
    assert start(tmp_path, Console(file=io.StringIO())) == 1
    assert [one.get("SVC_INGEST_PORT") for one in found] == [ports["SVC_INGEST_PORT"]]
    assert found[0]["SVC_INGEST_URL"]
    assert not (tmp_path / FILE).exists()


def test_a_start_with_a_bad_setting_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.os.environ", {"SVC_NONSENSE": "1"})
    printed = io.StringIO()
    assert start(tmp_path, Console(file=printed, width=200)) == 2
    assert "SVC_NONSENSE is not a setting" in printed.getvalue()
    assert CORRECT_SETTING in printed.getvalue()


def test_printed_ingest_address_is_the_one_that_the_library_takes(tmp_path: Path) -> None:
    stack = Stack(tmp_path, SERVERS)
    printed = io.StringIO()
    announce(stack, Console(file=printed))
    [line] = [line for line in printed.getvalue().splitlines() if line.startswith("ingest")]
    assert line.split() == ["ingest", stack.variables["SVC_INGEST_URL"]]


def test_subcommand_whose_module_is_missing_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "ghost", "no_such_package.ghost:ghost")
    assert "ghost" not in group().list_commands(click.Context(svc))
    assert group().get_command(click.Context(svc), "ghost") is None


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        (["send", "a", "--data-dir", "d"], ["--data-dir", "d", "send", "a"]),
        (["projects", "list", "--data-dir=d", "--json"], ["--data-dir=d", "projects", "list", "--json"]),
        (["--data-dir", "d", "up"], ["--data-dir", "d", "up"]),
        (["send", "--", "--data-dir", "d"], ["send", "--", "--data-dir", "d"]),
        (["up", "--data-dir"], ["--data-dir", "up"]),
    ],
)
def test_data_directory_may_follow_the_subcommand(given: list[str], parsed: list[str]) -> None:
    assert hoisted(given) == parsed


def test_help_imports_no_framework() -> None:
    program = (
        "import sys, cli.__main__\n"
        "print(sorted({'faust', 'aiohttp', 'aiokafka', 'clickhouse_connect'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_subcommand_gets_its_data_directory_as_an_absolute_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Workspace] = []

    @click.command()
    @click.pass_obj
    def probe(workspace: Workspace) -> None:
        seen.append(workspace)

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: probe)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(svc, ["--data-dir", "here", "probe"], catch_exceptions=False)
    CliRunner().invoke(svc, ["probe"], env={"SVC_DATA_DIR": "there"}, catch_exceptions=False)
    assert [workspace.data_dir for workspace in seen] == [tmp_path / "here", tmp_path / "there"]
    assert seen[1].environ["SVC_DATA_DIR"] == str(tmp_path / "there")


def test_an_update_of_nothing_is_refused() -> None:
    answer = CliRunner().invoke(svc, ["projects", "update", "shop"])
    assert answer.exit_code == 2
    assert "nothing to change: give at least one option" in answer.output


def test_help_has_every_subcommand_in_its_section_with_its_whole_sentence() -> None:
    text = CliRunner().invoke(svc, ["--help"]).output
    assert [line.rstrip(":") for line in text.splitlines() if line.rstrip(":") in SECTIONS] == [*SECTIONS]
    words = set(text.split())
    assert words >= COMMANDS.keys()
    assert "..." not in text.partition("\n")[2]


def test_commands_are_not_talked_over_by_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    level = root.level
    monkeypatch.setattr(logging.getLogger("aiokafka"), "level", logging.NOTSET)
    monkeypatch.setattr(__main__.svc, "main", lambda **_: None)
    try:
        __main__.main()
        assert not logging.getLogger("aiokafka").isEnabledFor(logging.ERROR)
    finally:
        root.setLevel(level)
