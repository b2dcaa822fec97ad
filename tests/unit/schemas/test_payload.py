"""Payloads are JSON; frames of earlier versions are read with the dictionary that they name, which is never cut short, and waited for."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from schemas import payload
from schemas.errors import BadPayload, BadSetting, MissingDictionary
from tests.framed_payloads import EVENTS, add_dictionary, framed, trained

CONTENTS = {number: trained(number) for number in (1000, 1001, 1256, 1257)}


@pytest.fixture(autouse=True)
def only_the_shipped() -> Iterator[None]:
    yield
    payload.use_dictionaries("")


def test_json_comes_back_as_it_is() -> None:
    assert payload.event_json(EVENTS[0]) is EVENTS[0]
    assert payload.event_json(framed(EVENTS[0])) == EVENTS[0]


@pytest.mark.parametrize("frame", [zstandard.compress(b"no dictionary"), framed(b"x" * 99)[:-3]])
def test_a_damaged_frame_is_declared_so(frame: bytes) -> None:
    with pytest.raises(BadPayload):
        payload.event_json(frame)


def test_frames_of_dictionaries_side_by_side_are_told_apart_whatever_their_size(tmp_path: Path) -> None:
    sent = []
    for number, content in CONTENTS.items():
        sent += [(event, framed(event, content)) for event in (b"", EVENTS[0], EVENTS[0] * 3000)]
        add_dictionary(tmp_path, number, content)
    payload.use_dictionaries(str(tmp_path))
    for _ in range(2):
        for event, frame in sent:
            assert payload.event_json(frame) == event


def test_a_dictionary_is_waited_for_and_found_once_it_is_supplied(tmp_path: Path) -> None:
    frame = framed(EVENTS[0], CONTENTS[1000])
    with pytest.raises(MissingDictionary, match="SVC_PAYLOAD_DICTIONARIES"):
        payload.event_json(frame)
    payload.use_dictionaries(str(tmp_path))
    with pytest.raises(MissingDictionary, match="1000 is missing"):
        payload.event_json(frame)
    add_dictionary(tmp_path, 1000, CONTENTS[1000])
    assert payload.event_json(frame) == EVENTS[0]


def test_one_that_another_version_ships_is_missing_and_no_other_number_is_ours() -> None:
    with pytest.raises(MissingDictionary, match="another version"):
        payload.event_json(framed(EVENTS[0], trained(7)))
    with pytest.raises(BadPayload):
        payload.event_json(framed(EVENTS[0], trained(47_232)))


@pytest.mark.parametrize("damage", ["cut", "other", "no sum"])
def test_a_damaged_file_is_refused_at_the_start_and_later(tmp_path: Path, damage: str) -> None:
    file = add_dictionary(tmp_path, 1000, CONTENTS[1000])
    if damage == "cut":
        file.write_bytes(CONTENTS[1000][:-100])
    elif damage == "other":
        shutil.copy(add_dictionary(tmp_path / "x", 1001, CONTENTS[1001]), file)
    else:
        (tmp_path / "1000.sha256").unlink()
    with pytest.raises(BadSetting, match="SVC_PAYLOAD_DICTIONARIES"):
        payload.use_dictionaries(str(tmp_path))
    with pytest.raises(MissingDictionary):
        payload.dictionary(1000)


def test_a_folder_that_is_not_there_is_a_bad_setting(tmp_path: Path) -> None:
    with pytest.raises(BadSetting):
        payload.use_dictionaries(str(tmp_path / "no"))


def test_other_files_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    for name in ("1.zstd-dictionary", "99999.zstd-dictionary", "notes.txt", ".1002.zstd-dictionary.part"):
        (tmp_path / name).touch()
    payload.use_dictionaries(str(tmp_path))
