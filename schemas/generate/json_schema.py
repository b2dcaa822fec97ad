"""JSON Schemas of records and webhooks for other teams, generated from the structs.

Each topic has a file in `schemas/json/`, and so has the body of a webhook.
"""

import inspect
import json
from typing import Any, Final

import msgspec

from schemas.change_records import Change
from schemas.event import Event
from schemas.increments import SourceIncrements
from schemas.issues import Activity, DeltaRecord, IssueRecord, Outcome
from schemas.messages import WebhookMessage
from schemas.projects import Project


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
    "changes": Change,
    "projects": Project,
    "outcomes": Outcome | list[Outcome],
    "webhook": WebhookMessage,
}


def document(subject: str) -> str:
    """The JSON Schema (2020-12) of one subject, as in its file."""
    schema = with_clean_descriptions(msgspec.json.schema(SUBJECTS[subject]))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": subject}
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"


def with_clean_descriptions(schema: Any) -> Any:
    """The schema with docstrings unindented, as Python 3.13 keeps them."""
    if isinstance(schema, list):
        return [with_clean_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inspect.cleandoc(value)
        if key == "description" and isinstance(value, str)
        else with_clean_descriptions(value)
        for key, value in schema.items()
    }
