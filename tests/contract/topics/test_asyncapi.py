"""The AsyncAPI document is one, by AsyncAPI's own parser."""

import json
import subprocess
from pathlib import Path

from schemas.generate.asyncapi import asyncapi
from tests.programs import program


def validate(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    file = folder / "asyncapi.json"
    file.write_text(text, encoding="utf-8")
    command = [program("asyncapi-validate"), str(file)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_the_parser_accepts_the_document(tmp_path: Path) -> None:
    accepted = validate(tmp_path, asyncapi())
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    broken = json.loads(asyncapi())
    broken["operations"]["write-issues"]["channel"] = {"$ref": "#/channels/nothing"}
    refused = validate(tmp_path, json.dumps(broken))
    assert refused.returncode == 1
    assert "nothing" in refused.stdout


def test_every_channel_is_a_topic_with_its_key_and_schema() -> None:
    document = json.loads(asyncapi())
    issues = document["channels"]["issues"]["messages"]["issues"]
    assert issues["bindings"]["kafka"]["key"]["description"] == "issue"
    assert issues["payload"] == {"$ref": "#/components/schemas/IssueRecord"}
    assert {channel["address"] for channel in document["channels"].values()} == {
        f"{{prefix}}{name}"
        for name in ("grouped-events", "issues", "issue-activity", "outcomes", "dead-letters")
    }
