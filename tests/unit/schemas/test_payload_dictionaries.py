"""A deployment's own payload dictionaries: found by number, never cut short, and waited for where they are missing."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cli.demo.sample_events import load_samples
from cli.dictionary_training import train
from schemas import payload
from schemas.errors import BadSetting, MissingDictionary
from schemas.payload_dictionaries import FIRST_OWN, Dictionaries, add_dictionary

EVENTS = [msgspec.json.encode(event) for event in load_samples()]
CONTENTS = {number: train(EVENTS, number, 16_384) for number in (1000, 1001, 1256, 1257)}


@pytest.fixture(autouse=True)
def only_the_shipped() -> Iterator[None]:
    yield
    payload.use_dictionaries("")


def test_an_edge_compresses_with_the_highest_number(tmp_path: Path) -> None:
    shipped = payload.compress(EVENTS[0])
    for number in (1001, 1000):
        add_dictionary(tmp_path, number, CONTENTS[number])
    payload.use_dictionaries(str(tmp_path))
    frame = payload.compress(EVENTS[0])
    assert payload.number_of(frame) == 1001
    assert payload.number_of(shipped) == 1
    assert payload.decompress(frame) == payload.decompress(shipped) == EVENTS[0]


def test_frames_of_dictionaries_side_by_side_are_told_apart_whatever_their_size(tmp_path: Path) -> None:
    sent = []
    for number, content in CONTENTS.items():
        compress = payload.compressor(content, 3).compress
        # The head of a large frame is longer: its first bytes do not name the dictionary.
        sent += [(event, compress(event)) for event in (b"", EVENTS[0], EVENTS[0] * 3000)]
        add_dictionary(tmp_path, number, content)
    payload.use_dictionaries(str(tmp_path))
    for _ in range(2):
        for event, frame in sent:
            assert payload.decompress(frame) == event


def test_a_dictionary_is_waited_for_and_found_once_it_is_supplied(tmp_path: Path) -> None:
    frame = payload.compressor(CONTENTS[1000], 3).compress(EVENTS[0])
    with pytest.raises(MissingDictionary, match="SVC_PAYLOAD_DICTIONARIES"):
        payload.decompress(frame)
    payload.use_dictionaries(str(tmp_path))
    with pytest.raises(MissingDictionary, match="1000 is missing"):
        payload.decompress(frame)
    add_dictionary(tmp_path, 1000, CONTENTS[1000])
    assert payload.decompress(frame) == EVENTS[0]


def test_one_that_a_newer_version_ships_is_missing_and_no_other_number_is_ours() -> None:
    newer = payload.compressor(train(EVENTS, 7, 16_384), 1).compress(EVENTS[0])
    with pytest.raises(MissingDictionary, match="newer version"):
        payload.decompress(newer)
    foreign = payload.compressor(train(EVENTS, 40_000 - 32_768 + 40_000, 16_384), 1).compress(EVENTS[0])
    with pytest.raises(payload.BadPayload):
        payload.decompress(foreign)


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
        Dictionaries(tmp_path).content(1000)


def test_a_folder_that_is_not_there_is_a_bad_setting(tmp_path: Path) -> None:
    with pytest.raises(BadSetting):
        payload.use_dictionaries(str(tmp_path / "no"))


def test_a_number_is_never_taken_twice_and_other_files_are_passed_over(tmp_path: Path) -> None:
    add_dictionary(tmp_path, 1000, CONTENTS[1000])
    with pytest.raises(FileExistsError):
        add_dictionary(tmp_path, 1000, CONTENTS[1000])
    for name in ("1.zstd-dictionary", "99999.zstd-dictionary", "notes.txt", ".1002.zstd-dictionary.part"):
        (tmp_path / name).touch()
    assert Dictionaries(tmp_path).own() == [FIRST_OWN]
