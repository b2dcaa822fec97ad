"""The AsyncAPI 3.0 document of the topics that other teams may read, generated from the structs."""

import json
from typing import Any, Final

import msgspec

from schemas.dead_letters import HEADERS
from schemas.generate.json_schema import PUBLIC, SUBJECTS, with_clean_descriptions
from schemas.topics import Topic
from schemas.version import service_version

_REFERENCE: Final = "#/components/schemas/{name}"
_SOURCE: Final = {
    "type": "object",
    "properties": {
        "source": {"type": "string", "description": "PARTITION/OFFSET of the record of `events` that carried the event"}
    },
}  # fmt: skip
_WORDS: Final = {
    Topic.GROUPED_EVENTS: (
        "Each new event with its issue; written if SVC_GROUPED_EVENTS is set. "
        "A record may repeat after a crash."
    ),
    Topic.ISSUES: "The aggregate and the state of an issue; the newest value of a key is the issue, none removes it.",
    Topic.ISSUE_ACTIVITY: "Each change of an issue, under an id by which a repeat is recognised.",
    Topic.OUTCOMES: "What became of events, by minute; the same `source` and `sequence` again are a repeat.",
    Topic.DEAD_LETTERS: (
        "Records that a stage could not process, with their own key, value and headers, "
        "and the reason in further headers."
    ),
}


def asyncapi() -> str:
    """The document as JSON."""
    topics = list(_WORDS)
    references, components = msgspec.json.schema_components(
        [SUBJECTS[topic.title] for topic in topics if topic.title in PUBLIC], ref_template=_REFERENCE
    )
    payloads = dict(zip((topic for topic in topics if topic.title in PUBLIC), references, strict=True))
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "svc: topics for other teams",
            "version": service_version(),
            "description": "Values are plain JSON. Names have the prefix of the deployment (SVC_TOPIC_PREFIX).",
        },
        "defaultContentType": "application/json",
        "channels": {topic.title: _channel(topic, payloads.get(topic)) for topic in topics},
        "operations": {
            f"write-{topic.title}": {
                "action": "send",
                "channel": {"$ref": f"#/channels/{topic.title}"},
                "summary": _WORDS[topic],
            }
            for topic in topics
        },
        "components": {"schemas": _without_discriminators(with_clean_descriptions(components))},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _channel(topic: Topic, payload: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "summary": topic.record,
        "bindings": {"kafka": {"key": {"type": "string", "description": topic.key}}},
    }
    if payload is not None:
        message["payload"] = payload
    if topic is Topic.GROUPED_EVENTS:
        message["headers"] = _SOURCE
    elif topic is Topic.DEAD_LETTERS:
        message["contentType"] = "application/octet-stream"
        names = {name: {"type": "string"} for name in HEADERS}
        message["headers"] = {"type": "object", "properties": names}
    return {
        "address": f"{{prefix}}{topic.title}",
        "description": _WORDS[topic],
        "parameters": {"prefix": {"default": "svc.", "description": "SVC_TOPIC_PREFIX"}},
        "messages": {topic.title: message},
        "bindings": {"kafka": {"topicConfiguration": {"cleanup.policy": [topic.cleanup]}}},
    }


def _without_discriminators(schema: Any) -> Any:
    """The schema without hints that only OpenAPI has in this form."""
    if isinstance(schema, list):
        return [_without_discriminators(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_discriminators(value) for key, value in schema.items() if key != "discriminator"}
