"""One good event and its mutations: each documented mutation is refused with the field that it broke.

The same table holds for the strict and, but for the rows named there, for the lenient rules.
"""

import copy
import json
from typing import Any, NamedTuple

import pytest

from edge.validation.validate import LENIENT, STRICT, InvalidEvents, ValidationRules, validate
from schemas.limits import Limit
from tests.edge_events import event

MISSING = object()
"""Put in the place of a value: the field is left out."""

CRUMB = {"timestamp": "2026-01-31T12:00:00Z", "type": "custom", "data": {}}
FRAME = {"file": "a.js", "line": 1, "inApp": True}


class Mutation(NamedTuple):
    """The path and value to set, the field to be named, and the message where it is fixed."""

    path: str
    value: Any
    field: str
    message: str = ""


def chain(links: int) -> dict[str, Any] | None:
    """An error with `links` causes below it."""
    error: dict[str, Any] | None = None
    for _ in range(links + 1):
        error = {"type": "E", "message": "m", "stack": [], "cause": error}
    return error


def _missing() -> list[Mutation]:
    nothing: list[Any] = [MISSING, None]
    required = [
        "id", "timestamp", "kind", "platform", "release", "environment", "device", "app", "error",
        "device.os", "device.osVersion", "app.version", "app.framework.name", "app.framework.version",
        "error.type", "error.message", "error.stack",
        "error.stack[0].file", "error.stack[0].line", "error.stack[0].inApp",
        "error.cause.type", "error.cause.message", "error.cause.stack",
        "breadcrumbs[0].timestamp", "breadcrumbs[0].type", "breadcrumbs[0].data",
    ]  # fmt: skip
    return [Mutation(path, value, path, "required") for path in required for value in nothing]


def _wrong_types() -> list[Mutation]:
    strings = [
        "id", "timestamp", "kind", "platform", "release", "environment", "device.os", "device.osVersion",
        "device.model", "device.locale", "app.version", "app.build", "app.framework.name",
        "app.framework.version", "user.id", "user.name", "error.type", "error.message",
        "error.stack[0].function", "error.stack[0].file", "error.stack[0].absolutePath",
        "error.stack[0].preContext[0]", "error.stack[0].contextLine", "error.stack[0].postContext[0]",
        "error.cause.type", "error.cause.message", "breadcrumbs[0].timestamp", "breadcrumbs[0].type",
        "breadcrumbs[0].data.from", "breadcrumbs[0].data.to", "breadcrumbs[1].data.method", "breadcrumbs[1].data.url",
        "breadcrumbs[2].data.level", "breadcrumbs[2].data.message", "breadcrumbs[3].data.action",
        "breadcrumbs[3].data.target", "traceId", "spanId", "tags.feature",
    ]  # fmt: skip
    integers = [
        "error.stack[0].line", "error.stack[0].column", "breadcrumbs[1].data.status", "breadcrumbs[1].data.durationMs"
    ]  # fmt: skip
    booleans = ["user.anonymous", "error.stack[0].inApp"]
    objects = [
        "device", "app", "error", "user", "tags", "app.framework", "error.cause", "error.stack[0]",
        "breadcrumbs[0]", "breadcrumbs[0].data", "breadcrumbs[4].data", "user.linkHashes",
    ]  # fmt: skip
    arrays = [
        "breadcrumbs", "fingerprint", "error.stack", "error.cause.stack",
        "error.stack[0].preContext", "error.stack[0].postContext",
    ]  # fmt: skip
    not_text: list[Any] = [7, ["x"]]
    no_integer: list[Any] = ["7", 1.5, True]
    no_boolean: list[Any] = ["true", 1]
    no_object: list[Any] = ["x", []]
    no_array: list[Any] = ["x", {}]
    return [
        *(Mutation(path, value, path) for path in strings for value in not_text),
        *(Mutation(path, value, path) for path in integers for value in no_integer),
        *(Mutation(path, value, path) for path in booleans for value in no_boolean),
        *(Mutation(path, value, path) for path in objects for value in no_object),
        *(Mutation(path, value, path) for path in arrays for value in no_array),
    ]


NO_TIMES = [
    "2026-01-31 12:00:00.000Z",
    "2026-01-31t12:00:00.000Z",
    "2026-01-31T12:00:00.000z",
    "2026-01-31T12:00:00.000+0000",
    "2026-01-31T12:00:00.000+00",
    "2026-01-31T12:00:00.000-00:00",
    "2026-01-31T12:00Z",
    "2026-01-31T12:00:00,000Z",
    "2026-01-31T12:00:00.Z",
    "2026-01-31T24:00:00.000Z",
    "2026-01-31T23:59:60.000Z",
    "2026-01-31T23:60:00.000Z",
    "2026-W05-6T12:00:00.000Z",
    "2026-031T12:00:00.000Z",
    "20260131T120000.000Z",
    "0000-01-31T12:00:00.000Z",
    "9999-12-31T23:59:59.9999999Z",
    "2026-01-31T12:00:00.000Z\n",
    "2026-01-31T12:00:00.00\u0660Z",
]
"""Close to a time, and some of it read as one by usual decoders."""

FORMATS = [
    Mutation("timestamp", "2026-01-31T12:00:00.000", "timestamp"),
    Mutation("timestamp", "2026-01-31T12:00:00.000+01:00", "timestamp"),
    Mutation("timestamp", "2026-01-31T12:00:00.000-00:30", "timestamp"),
    Mutation("timestamp", "2026-01-31", "timestamp"),
    Mutation("timestamp", "2026-13-31T12:00:00.000Z", "timestamp"),
    Mutation("timestamp", "2026-02-30T12:00:00.000Z", "timestamp"),
    Mutation("timestamp", "2026-01-31T25:00:00.000Z", "timestamp"),
    Mutation("timestamp", "31/01/2026 12:00", "timestamp"),
    Mutation("timestamp", "1769860800000", "timestamp"),
    Mutation("timestamp", "", "timestamp"),
    *(Mutation(path, time, path) for path in ("timestamp", "breadcrumbs[1].timestamp") for time in NO_TIMES),
    Mutation("breadcrumbs[1].timestamp", "2026-01-31T12:00:00+02:00", "breadcrumbs[1].timestamp"),
    Mutation("breadcrumbs[1].timestamp", "yesterday", "breadcrumbs[1].timestamp"),
    Mutation("platform", "windows", "platform", "expected one of: javascript, ios, android, python"),
    Mutation("platform", "JavaScript", "platform"),
    Mutation("device.os", "windows", "device.os", "expected one of: ios, android, web, other"),
    Mutation("device.os", "", "device.os"),
    Mutation(
        "breadcrumbs[0].type",
        "click",
        "breadcrumbs[0].type",
        "expected one of: nav, net, log, user, custom, track",
    ),
    Mutation("kind", "message", "kind"),
    Mutation("kind", "", "kind"),
    Mutation("id", "", "id"),
    Mutation("id", "not-a-uuid", "id"),
    Mutation("id", "0199ee65f275750f87fc3665cc81dda7", "id"),
    Mutation("id", "0199ee65-f275-750f-87fc-3665cc81dda", "id"),
    Mutation("id", "0199ee65-f275-750f-87fc-3665cc81dda7\n", "id"),
    Mutation("id", "{0199ee65-f275-750f-87fc-3665cc81dda7}", "id"),
    Mutation("release", "", "release"),
    Mutation("error.stack[0].line", -1, "error.stack[0].line"),
    Mutation("error.stack[0].column", -5, "error.stack[0].column"),
    Mutation("error.stack[0].line", 10**30, "error.stack[0].line"),
    Mutation("error.cause.stack", [FRAME, FRAME | {"line": -1}], "error.cause.stack[1].line"),
    Mutation("error.cause.cause", {"type": "E", "message": 1, "stack": []}, "error.cause.cause.message"),
]

LIMITS = [
    Mutation("breadcrumbs", [CRUMB] * 101, "breadcrumbs", "at most 100 breadcrumbs per event"),
    Mutation("error.stack", [FRAME] * 101, "error.stack", "at most 100 stack frames per error"),
    Mutation("error.cause.stack", [FRAME] * 101, "error.cause.stack", "at most 100 stack frames per error"),
    Mutation("error", chain(11), "error.cause", Limit.CAUSE_DEPTH.sentence),
    Mutation("error", chain(200), "error.cause", Limit.CAUSE_DEPTH.sentence),
    Mutation("tags", {str(n): "x" for n in range(51)}, "tags", "at most 50 tag keys per event"),
    Mutation("tags", {"k" * 65: "x"}, "tags", Limit.TAG_KEY_LENGTH.sentence),
    Mutation("tags", {"k": "x" * 201}, "tags.k", Limit.TAG_VALUE_LENGTH.sentence),
    Mutation("tags", {"k": "\U0001f600" * 201}, "tags.k", Limit.TAG_VALUE_LENGTH.sentence),
    Mutation(
        "error.stack[0].preContext", ["x"] * 6, "error.stack[0].preContext", Limit.CONTEXT_LINES.sentence
    ),
    Mutation(
        "error.stack[0].postContext", ["x"] * 6, "error.stack[0].postContext", Limit.CONTEXT_LINES.sentence
    ),
]

STRICT_ONLY = [
    Mutation(
        "id",
        "0199ee65-f275-450f-87fc-3665cc81dda7",
        "id",
        "expected a uuid of version 7, from the v7 function of a uuid library; a random uuid (version 4) is refused",
    ),
    Mutation("id", "0199ee65-f275-150f-87fc-3665cc81dda7", "id"),
    Mutation("id", "0199ee65-f275-750f-07fc-3665cc81dda7", "id"),
    Mutation("id", "00000000-0000-0000-0000-000000000000", "id"),
    Mutation("release", "shop@1.2.3", "release", "expected <app-name>@<version>+<build>"),
    Mutation("release", "shop+45", "release"),
    Mutation("release", "c++@1.2.3+45", "release"),
    Mutation("release", "@+1", "release"),
    Mutation("release", "+shop@1.2.3+45", "release"),
    Mutation("release", "1.2.3", "release"),
    Mutation("release", "@1.2.3+45", "release"),
    Mutation("release", "shop@+45", "release"),
    Mutation("release", "shop@1.2.3+", "release"),
    Mutation("release", "shop 1.2.3 (45)", "release"),
    Mutation("kind", "anr", "kind", "expected one of: error"),
    Mutation("kind", "nearCrash", "kind"),
    Mutation("error.stack[0].line", 0, "error.stack[0].line"),
    Mutation("error.stack[0].column", 0, "error.stack[0].column"),
    Mutation("error.cause.stack", [FRAME | {"line": 0}], "error.cause.stack[0].line"),
]

BOTH = [*_missing(), *_wrong_types(), *FORMATS, *LIMITS]


def mutated(mutation: Mutation) -> bytes:
    whole = copy.deepcopy(event())
    *way, last = mutation.path.replace("[", ".").replace("]", "").split(".")
    parent: Any = whole
    for step in way:
        parent = parent[int(step)] if isinstance(parent, list) else parent.setdefault(step, {})
    if mutation.value is MISSING:
        del parent[last]
    elif isinstance(parent, list):
        parent[int(last)] = mutation.value
    else:
        parent[last] = mutation.value
    return json.dumps(whole).encode()


def refused(body: bytes, rules: ValidationRules) -> list[tuple[str, str]]:
    with pytest.raises(InvalidEvents) as caught:
        validate(body, rules)
    return [(detail.field, detail.message) for detail in caught.value.details]


@pytest.mark.parametrize("rules", [STRICT, LENIENT], ids=["strict", "lenient"])
@pytest.mark.holds(
    "protocol 2.1",
    "protocol 2.2",
    "protocol 2.4",
    "protocol 2.5",
    "protocol 2.6",
    "protocol 2.7",
    "protocol 2.8",
    "protocol 4.3",
    "protocol 8",
    "contract 2.7",
)
def test_mutations_are_refused_with_their_field_and_no_other(rules: ValidationRules) -> None:
    for mutation in [*BOTH, *STRICT_ONLY] if rules is STRICT else BOTH:
        [(field, message)] = refused(mutated(mutation), rules)
        assert field == mutation.field, mutation
        assert rules is LENIENT or message == (mutation.message or message), mutation


@pytest.mark.holds("contract 2.7")
def test_lenient_project_accepts_events_of_fleets() -> None:
    for mutation in STRICT_ONLY:
        body = mutated(mutation)
        assert bytes(validate(body, LENIENT)[1]) == body, mutation


@pytest.mark.parametrize("release", ["", "x" * 201])
def test_lenient_release_has_1_to_200_characters(release: str) -> None:
    ((field, _),) = refused(mutated(Mutation("release", release, "release")), LENIENT)
    assert field == "release"


@pytest.mark.parametrize(
    "mutation",
    [
        Mutation("breadcrumbs", [CRUMB] * 100, ""),
        Mutation("error.stack", [FRAME] * 100, ""),
        Mutation("error", chain(10), ""),
        Mutation("tags", {str(n): "x" for n in range(50)}, ""),
        Mutation("tags", {"k" * 64: "x" * 200, "\U0001f600" * 64: "\U0001f600" * 200}, ""),
        Mutation("error.stack[0].preContext", ["x" * 10_000] * 5, ""),
    ],
)
@pytest.mark.holds("protocol 2.6", "contract 2.6")
def test_event_at_a_limit_is_accepted(mutation: Mutation) -> None:
    body = mutated(mutation)
    assert bytes(validate(body, STRICT)[1]) == body


@pytest.mark.holds("protocol 7")
def test_every_limit_of_section_8_is_named_by_its_title_and_number() -> None:
    messages = {mutation.message for mutation in LIMITS}
    for limit in set(Limit) - {Limit.EVENTS_PER_BATCH}:
        assert limit.sentence in messages
        assert limit.title in limit.sentence
        assert str(limit.maximum) in limit.sentence


@pytest.mark.holds("contract 2.3")
def test_all_violations_are_listed_in_the_order_of_the_schema() -> None:
    body = json.dumps(event(kind="x", platform="y", tags=[], error={"type": 1, "stack": [{}]})).encode()
    assert [field for field, _ in refused(body, STRICT)] == [
        "kind",
        "platform",
        "error.type",
        "error.message",
        "error.stack[0].file",
        "error.stack[0].line",
        "error.stack[0].inApp",
        "tags",
    ]


@pytest.mark.holds("contract 2.3")
def test_at_most_20_violations_are_listed() -> None:
    body = json.dumps(event(error={"type": "E", "message": "m", "stack": [{}] * 50})).encode()
    assert len(refused(body, STRICT)) == 20
