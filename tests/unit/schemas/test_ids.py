"""Tokens, uuids and the hashes that name issues."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import ids

uuids = st.integers(0, (1 << 128) - 1).map(lambda n: uuid.UUID(int=n, version=4))
sevens = st.builds(ids.uuid7, st.integers(0, (1 << 48) - 1))


def test_token_has_the_form_of_section_5() -> None:
    token = ids.new_token()
    assert token.startswith("svc_pk_")
    assert len(token) == len("svc_pk_") + 26
    assert token == token.lower()
    assert not set(token.removeprefix("svc_pk_")) & set("ilou")


@given(sevens)
def test_token_and_uuid_are_each_others_inverse(value: uuid.UUID) -> None:
    assert ids.decode_token(ids.encode_token(value)) == value


@given(st.text(max_size=40))
def test_any_other_text_is_no_token(text: str) -> None:
    assert ids.decode_token(text) is None


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda t: t[:-1],
        lambda t: t + "0",
        lambda t: t[:-1] + "u",
        lambda t: t.replace("pk", "sk"),
        lambda t: t.removeprefix("svc_pk_"),
        lambda t: "svc_pk_z" + t[8:],
    ],
)
def test_a_token_of_another_form_is_refused(change: object) -> None:
    assert callable(change)
    assert ids.decode_token(change(ids.encode_token(ids.uuid7(1_700_000_000_000)))) is None


def test_a_token_that_encodes_another_uuid_version_is_refused() -> None:
    assert ids.decode_token(ids.encode_token(uuid.uuid4())) is None


@given(st.integers(0, (1 << 48) - 1))
def test_uuid7_carries_its_time_and_version(ms: int) -> None:
    value = ids.uuid7(ms)
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert ids.uuid7_ms(value.bytes) == ms


def test_partition_is_the_crc_that_the_contract_names() -> None:
    event = uuid.UUID("0199ee65-f275-750f-87fc-3665cc81dda7")
    # crc32 of b"7/0199ee65-f275-750f-87fc-3665cc81dda7", computed apart from this code
    assert ids.event_partition(7, event.bytes, 1 << 32) == 0xE51D06C3


@given(st.integers(1, (1 << 32) - 1), st.integers(0, (1 << 64) - 1))
def test_issue_ids_are_64_bits_and_differ_by_project(project: int, fingerprint: int) -> None:
    first = ids.issue_id(project, fingerprint)
    assert 0 <= first < 1 << 64
    assert first == ids.issue_id(project, fingerprint)
    assert first != ids.issue_id(project ^ 1, fingerprint)


@given(st.integers(0, (1 << 64) - 1))
def test_hex64_round_trips(value: int) -> None:
    assert ids.parse_hex64(ids.hex64(value)) == value


@pytest.mark.parametrize("text", ["", "12", "g" * 16, "A" * 16, "0" * 17, "０" * 16])
def test_other_texts_are_no_hex64(text: str) -> None:
    assert ids.parse_hex64(text) is None


@given(st.integers(1, (1 << 32) - 1), st.text())
def test_a_user_hash_is_never_the_mark_for_no_user(project: int, user: str) -> None:
    assert 0 < ids.user_hash(project, user) < 1 << 64
