from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.__main__ import svc
from cli.erase import EraseConsole, print_erase_report
from control.erasure import left
from schemas.settings import KafkaSettings
from storage.maintain.erase.erase_project import ProjectReport
from storage.maintain.erase.erase_user import UserReport
from storage.maintain.erase.sizes import TableReport

USER = UserReport(project_id="7", events=3, tables=[TableReport("events", 3, 3, 100, 100)], dry_run=True)


def test_a_dry_run_goes_no_further_and_asks_nothing() -> None:
    assert not EraseConsole(dry_run=True, yes=False, as_json=False).agree(USER, "Erase?")


def test_yes_skips_the_prompt() -> None:
    assert EraseConsole(dry_run=False, yes=True, as_json=True).agree(USER, "Erase?")


def test_finished_erasure_skips_the_prompt() -> None:
    finished = UserReport(project_id="7", events=0, tables=[], before="2026-11-01T00:00:00+00:00")
    assert EraseConsole(dry_run=False, yes=False, as_json=False).agree(finished, "Erase?")


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_the_confirmation_follows_the_counts_to_erase(answer: str, status: int) -> None:
    @click.command()
    def ask() -> None:
        EraseConsole(dry_run=False, yes=False, as_json=False).agree(USER, "Erase 3 events?")

    result = CliRunner().invoke(ask, input=answer)
    assert result.exit_code == status
    assert "events" in result.stdout
    assert "Erase 3 events? [y/N]" in result.stderr


def test_json_leaves_standard_output_to_the_report() -> None:
    @click.command()
    def ask() -> None:
        EraseConsole(dry_run=False, yes=False, as_json=True).agree(USER, "Erase 3 events?")

    result = CliRunner().invoke(ask, input="y\n")
    assert "Erase" in result.stderr
    assert "e" not in result.stdout


def test_places_that_still_hold_events_are_named_with_their_end() -> None:
    remaining = left(USER, KafkaSettings(topic_prefix="x.", topic_names="grouped=elsewhere"))
    assert [one.topic for one in remaining] == [
        "x.events",
        "elsewhere",
        "x.grouped-events",
        "x.issue-deltas",
        "x.dead-letters",
    ]
    project = left(ProjectReport(project_id="7", tables=[]), KafkaSettings())
    assert {one.topic for one in project} > {"svc.events", "svc.issue-activity", "svc.outcomes"}


def test_an_erasure_is_printed_with_its_tables_and_issues(capsys: pytest.CaptureFixture[str]) -> None:
    done = UserReport(
        project_id="7",
        events=3,
        tables=[TableReport("events", 3, 0, 1000, 10)],
        issues=["00ff"],
        erasure="e-1",
    )
    print_erase_report(done, left(done, KafkaSettings()))
    output = capsys.readouterr().out
    assert "erased (erasure e-1)" in output
    assert "1,000" in output
    assert "1 issues got the text of another event: 00ff" in output
    assert "svc.dead-letters until" in output


def test_a_missing_clickhouse_is_one_line(tmp_path: Path) -> None:
    env = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    result = CliRunner().invoke(svc, ["--data-dir", str(tmp_path), "erase", "--project", "7"], env=env)
    assert result.exit_code == 2
    assert result.stderr.startswith("svc: no ClickHouse")


def test_a_user_id_that_is_no_text_is_refused(tmp_path: Path) -> None:
    env = {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1", "SVC_CLICKHOUSE_URL": "http://u:p@127.0.0.1:1/svc"}
    arguments = ["--data-dir", str(tmp_path), "erase", "--project", "7", "--user", "\udcff"]
    result = CliRunner().invoke(svc, arguments, env=env)
    assert (result.exit_code, result.stderr) == (2, "svc: the user id is not valid UTF-8\n")
