"""The command: one JSON line an event, complaints with file and line, rules tried without a server."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.fingerprint import fingerprint
from tests.unit.grouping.fingerprint.events import SAMPLES, event, frame

WRITTEN = SAMPLES / "written.events.jsonl"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(fingerprint, [str(argument) for argument in arguments])


def sent(**more: Any) -> str:
    return json.dumps(event(stack=[frame("pay", "src/pay.js")], id="e1", **more))


def test_each_event_is_a_json_line_of_five_keys() -> None:
    result = run(WRITTEN)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert len(lines) == len(WRITTEN.read_text().splitlines())
    assert all(list(line) == ["id", "fingerprint", "version", "rule", "parts"] for line in lines)
    assert {line["version"] for line in lines} == {"v1"}


def test_bad_lines_are_reported_with_file_and_line_and_others_printed(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(f"{sent()}\n\nnot json\n{sent()}\n{{}}\n")
    result = run(file)
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 2
    assert [line.split(" ")[0] for line in result.stderr.splitlines()] == [f"{file}:3:", f"{file}:5:"]


def test_a_truncated_file_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "events.jsonl.gz"
    broken.write_bytes(gzip.compress(WRITTEN.read_bytes())[:-20])
    result = run(broken, WRITTEN)
    assert result.exit_code == 1
    assert str(broken) in result.stderr
    assert len(result.stdout.splitlines()) >= len(WRITTEN.read_text().splitlines())


@pytest.mark.parametrize("line", ["[" * 5000, '{"error":' * 3000, "\xff", '{"error":{"cause":' * 2000])
def test_hostile_lines_are_bad_lines(line: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(line.encode("latin-1") + b"\n")
    result = run(file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:1:")


def test_half_an_emoji_is_replaced_as_the_edge_does(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"id":"e","error":{"type":"A","message":"\\ud83d cut","stack":[]}}\n')
    result = run(file)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["parts"][1] == "message \ufffd cut"


def test_rules_are_tried(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules.json", tmp_path / "events.jsonl"
    rules.write_text(
        json.dumps([{"name": "mine", "match": "type:TypeError", "fingerprint": ["x", "{{ default }}"]}])
    )
    file.write_text(sent() + "\n")
    line = json.loads(run("--rules", rules, file).stdout)
    assert line["rule"] == "rule:mine"
    assert line["parts"][0] == "given x"


def test_a_dropped_event_is_printed_as_such(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules.json", tmp_path / "events.jsonl"
    rules.write_text(json.dumps([{"name": "noise", "match": "file:*pay.js", "discard": True}]))
    file.write_text(sent() + "\n")
    assert json.loads(run("--rules", rules, file).stdout)["discard"] is True


@pytest.mark.parametrize(
    ("given", "code", "complaint"),
    [
        ([{"name": "broken", "match": "((", "discard": True}], 1, "rules[0].match: at position 2"),
        (
            [{"name": "many", "match": "", "notInApp": [f"*{n}*" for n in range(300)]}],
            1,
            "at most 1,000 characters",
        ),
        ({"name": "not a list"}, 2, ""),
    ],
    ids=["invalid", "above the limit", "no rules"],
)
def test_rules_that_cannot_be_tried_are_reported(
    tmp_path: Path, given: object, code: int, complaint: str
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(given))
    result = run("--rules", rules, WRITTEN)
    assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1)
    assert complaint in result.stderr


def test_explanations_show_groups_with_their_parts() -> None:
    result = run("--explain", WRITTEN)
    assert result.exit_code == 0
    assert "bad access" in result.stdout
    assert "decided: the topmost frame of the app." in result.stdout
    assert "groups" in result.stdout.splitlines()[-1]


def test_text_of_events_is_never_parsed_as_markup(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(json.dumps(event("[bold]E[/bold]", "[red]m[/nonsense]", id="[/x]")) + "\n")
    result = run("--explain", file)
    assert result.exit_code == 0
    assert "[bold]E[/bold]" in result.stdout
