"""The edge's outcomes of refused events."""

import pytest

from schemas.ids import new_token, uuid7
from schemas.issues import Outcome, decode_outcomes
from schemas.projects import Token
from schemas.topics import Topic
from tests.contract.edge.live_edge import MOMENT, LiveEdge
from tests.edge_events import event

SECRET = "anna@example.com"


async def reported(edge: LiveEdge) -> list[Outcome]:
    await edge.outcomes.flush()
    values = [record.value for record in edge.sink.records if record.topic is Topic.OUTCOMES]
    assert not any(SECRET.encode() in value for value in values)
    return [one for value in values for one in decode_outcomes(value)]


@pytest.mark.holds("contract 2.14")
async def test_each_reason_of_a_batch_has_the_example_of_its_first_event(edge: LiveEdge) -> None:
    numbers = [str(uuid7()) for _ in range(4)]
    sent = [
        event(id=numbers[0]),
        event(id=numbers[1], tags={SECRET: 5}),
        event(id=numbers[2], tags={SECRET: 5}, release=SECRET),
        event(id=SECRET),
    ]
    answer = await edge.post_batch(sent)
    assert [error["index"] for error in answer.json["errors"]] == [1, 2, 3]
    found = {one.reason: (one.count, one.example) for one in await reported(edge)}
    (by_id,) = [one for reason, one in found.items() if reason == "schema: id"]
    assert by_id[0] == 1
    assert by_id[1].startswith("id: expected a uuid of version 7")
    assert by_id[1].endswith(" (release shop@1.2.3+45)")
    assert found["schema: tags"] == (
        1,
        f"tags: expected a string (release shop@1.2.3+45, event {numbers[1]})",
    )
    assert found["schema: release"] == (
        1,
        f"release: expected <app-name>@<version>+<build> (event {numbers[2]})",
    )


async def test_a_body_that_is_no_event_is_an_example_without_origin(edge: LiveEdge) -> None:
    await edge.post(b'{"id": "' + SECRET.encode() + b'"')
    await edge.post(b'{"events": 5, "release": "a@1+2"}', "/v1/events:batch")
    await edge.post(b"{}", headers=edge.headers(Content_Type="text/plain"))
    examples = {one.reason: one.example for one in await reported(edge)}
    assert examples["body"].startswith("body: malformed JSON: ")
    assert examples["events"] == "events: expected an array"
    assert examples["headers"] == "Content-Type: expected application/json"


async def test_a_project_sees_who_still_uses_a_revoked_token_and_the_sender_hears_of_an_unknown_one(
    edge: LiveEdge,
) -> None:
    old = edge.project.tokens[0].token
    edge.add_project("1", tokens=(Token(old, MOMENT, revoked_at=MOMENT),))
    answers = [
        await edge.post_event(),
        await edge.post(b"", headers=edge.headers(Authorization=f"Bearer {new_token()}")),
    ]
    assert [(answer.status, answer.json) for answer in answers] == [(401, answers[0].json)] * 2
    (outcome,) = await reported(edge)
    assert (outcome.project_id, outcome.outcome, outcome.reason, outcome.count) == (
        edge.project.id,
        "revokedToken",
        old[-4:],
        1,
    )
