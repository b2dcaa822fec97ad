"""JSON Schemas of the records that others read, generated from the structs: `python -m schemas.generate.json_schema [--check]`.

One file a topic in `schemas/json/`, registrable in a schema registry as it stands.
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from schemas.event import Event
from schemas.increments import SourceIncrements
from schemas.issues import Activity, DeltaRecord, IssueRecord, Outcome
from schemas.projects import Project

FOLDER: Final = Path(__file__).parents[1] / "json"


class GroupedEventRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One value of `grouped-events`: the stream for other teams."""

    project_id: str
    issue_id: str
    fingerprint: str
    grouping: str
    received_at: str
    sdk: str
    event: Event


SUBJECTS: Final[dict[str, Any]] = {
    "event": Event,
    "grouped-events": GroupedEventRecord,
    "issue-deltas": DeltaRecord | list[SourceIncrements],
    "issues": IssueRecord,
    "issue-activity": Activity,
    "projects": Project,
    "outcomes": Outcome,
}


def document(subject: str) -> str:
    """The JSON Schema (2020-12) of one subject, as its file holds it."""
    schema = with_clean_descriptions(msgspec.json.schema(SUBJECTS[subject]))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": subject}
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"


def with_clean_descriptions(schema: Any) -> Any:
    """The schema with docstrings as Python 3.13 keeps them: without the indentation of their source."""
    if isinstance(schema, list):
        return [with_clean_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inspect.cleandoc(value)
        if key == "description" and isinstance(value, str)
        else with_clean_descriptions(value)
        for key, value in schema.items()
    }


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` say which differ from the structs (exit status 1)."""
    stale = []
    for subject in SUBJECTS:
        path = FOLDER / f"{subject}.json"
        text = document(subject)
        if "--check" in arguments:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stderr.write(f"schemas/json/{name} is not what the structs say: run `make docs`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
