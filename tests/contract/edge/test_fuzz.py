"""A live edge answers any input with 2xx or a declared error in its declared shape, never with a 500."""

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import BatchResponse, ErrorBody, WireError
from tests.contract.edge.live_edge import Answer, LiveEdge, live_edge
from tests.edge_events import encoded
from tests.unit.edge.validation.test_validate import mutations

DECLARED = {(fault.status, fault.code) for fault in WireError}
fuzzing = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


class Fuzzed:
    """A live edge driven from a separate loop: Hypothesis calls plain functions."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._context = live_edge(folder)
        self.edge: LiveEdge = self._runner.run(self._context.__aenter__())

    def post(self, body: bytes, path: str, headers: dict[str, str]) -> Answer:
        return self._runner.run(self.edge.post(body, path, headers))

    def close(self) -> None:
        self._runner.run(self._context.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Fuzzed]:
    edge = Fuzzed(tmp_path)
    yield edge
    edge.close()


def assert_declared(answer: Answer, path: str) -> None:
    """The answer has one of the shapes of sections 2.9, 4.3 and 7, and no other field.

    Only a 401 may add `details` (section 9, rule 3).
    """
    assert answer.headers["Content-Type"] == "application/json"
    assert b"Traceback" not in answer.body
    if answer.status == 202:
        if "batch" not in path:
            assert answer.body == b"{}"
            return
        batch = msgspec.json.decode(answer.body, type=BatchResponse)
        assert batch.rejected == len(batch.errors)
        assert [error.index for error in batch.errors] == sorted({error.index for error in batch.errors})
        assert all(error.error == "validationFailed" and error.details for error in batch.errors)
        return
    body = msgspec.json.decode(answer.body, type=ErrorBody)
    assert (answer.status, body.error) in DECLARED
    assert answer.status < 500
    detailed = answer.status in {400, 401}
    assert set(answer.json) == ({"error", "details"} if detailed else {"error"})
    if detailed:
        assert 1 <= len(body.details or []) <= 20


@fuzzing
@given(bodies=st.lists(mutations(), min_size=1, max_size=4), lenient=st.booleans())
def test_mutated_events_of_a_batch_are_each_accepted_or_rejected(
    fuzzed: Fuzzed, bodies: list[bytes], lenient: bool
) -> None:
    project = fuzzed.edge.lenient if lenient else fuzzed.edge.project
    headers = fuzzed.edge.headers(project, Svc_Sdk="react-native/0.74", Content_Encoding="gzip")
    body = gzip.compress(b'{"events":[' + b",".join(bodies) + b"]}")
    answer = fuzzed.post(body, "/v1/events:batch", headers)
    assert_declared(answer, "/v1/events:batch")
    assert answer.json["accepted"] + answer.json["rejected"] == len(bodies)


@fuzzing
@given(offset=st.integers(0, len(gzip.compress(encoded())) - 1), damage=st.binary(min_size=1, max_size=4))
def test_damaged_gzip_gets_a_declared_answer(fuzzed: Fuzzed, offset: int, damage: bytes) -> None:
    whole = gzip.compress(encoded())
    body = whole[:offset] + damage + whole[offset + len(damage) :]
    assert_declared(
        fuzzed.post(body, "/v1/events", fuzzed.edge.headers(Content_Encoding="gzip")), "/v1/events"
    )


@fuzzing
@given(
    headers=st.dictionaries(
        st.sampled_from(
            ["Authorization", "Svc-Sdk", "Content-Type", "Content-Encoding", "Idempotency-Key", "Accept"]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60),
    )
)
def test_arbitrary_header_values_get_a_declared_answer(fuzzed: Fuzzed, headers: dict[str, str]) -> None:
    given = fuzzed.edge.headers() | headers
    assert_declared(fuzzed.post(encoded(), "/v1/events", given), "/v1/events")
