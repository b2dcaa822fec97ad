"""Unusable uploads are refused in one sentence, also those that break a decoder."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sourcemaps.upload_check import Refused, check
from sourcemaps.worker_messages import Upload
from tests.builds import ESBUILD, HERMES, MAPPING, VITE, Build

DEBUG_ID = "0f1e2d3c-4b5a-4697-8879-6a5b4c3d2e1f"


def upload(change: Callable[[dict[str, Any]], object] = lambda _: None, **fields: Any) -> Upload:
    """A usable upload with a change of its map, or with other fields."""
    source_map = json.loads(VITE[0].map)
    change(source_map)
    name = VITE[0].file.rpartition("/")[2]
    content = json.dumps(source_map).encode()
    return Upload(
        **(
            {"path": VITE[0].file, "name": f"{name}.map", "content": content, "script": VITE[0].script}
            | fields
        )
    )


def sentence(given: Upload) -> str:
    with pytest.raises(Refused) as refused:
        check(given)
    return str(refused.value)


@pytest.mark.parametrize("build", [*VITE, *ESBUILD], ids=lambda build: build.folder)
def test_a_recorded_build_is_accepted(build: Build) -> None:
    name = build.file.rpartition("/")[2]
    assert check(Upload(build.file, f"{name}.map", build.map, build.script)) == ("sourceMap", "")


def test_a_map_without_its_file_and_a_mapping_are_accepted() -> None:
    assert check(Upload("index.android.bundle", "", HERMES.map)) == ("sourceMap", "")
    assert check(Upload("mapping.txt", "", MAPPING.read_bytes())) == ("r8", "")


def test_the_name_of_a_map_may_be_quoted_in_the_file() -> None:
    script = VITE[0].script + b"\n//# sourceMappingURL=%5Bid%5D%20one.js.map"
    assert check(upload(name="[id] one.js.map", script=script)) == ("sourceMap", "")


def test_the_debug_id_of_the_file_is_that_of_the_map() -> None:
    script = VITE[0].script + f"\n//# debugId={DEBUG_ID.upper()}\n".encode()
    same = upload(lambda it: it.update(debugId=DEBUG_ID), script=script)
    assert check(same) == ("sourceMap", DEBUG_ID)
    assert check(upload(lambda it: it.update(debugId="d" * 1_000))) == ("sourceMap", "")
    other = upload(lambda it: it.update(debug_id="f" * 32), script=script)
    assert "it is the map of another file" in sentence(other)


REFUSED: dict[str, tuple[Upload, str]] = {
    "no JSON": (upload(content=b"console.log(1)"), "it is no source map"),
    "not UTF-8": (upload(content=b'{"version":3,"file":"\xff"}'), "it is no source map"),
    "a list": (upload(content=b"[]"), "it is no source map"),
    "deep JSON": (upload(content=b"[" * 1_000_000), "it is no source map"),
    "deep sections": (
        upload(content=b'{"version":3,"sections":[{"offset":{},"map":' * 5000),
        "it is no source map",
    ),
    "sections in sections": (
        upload(
            lambda it: it.update(sections=[{"offset": {}, "map": {"version": 3, "sections": []}}]), script=b""
        ),
        "its sections have sections",
    ),
    "version 2": (upload(lambda it: it.update(version=2)), "its version is 2"),
    "no sources": (upload(lambda it: it.update(sources=[])), "it has no sources"),
    "no content": (upload(lambda it: it.pop("sourcesContent")), "it has no sourcesContent"),
    "null content": (upload(lambda it: it.update(sourcesContent=[None, None])), "it has no sourcesContent"),
    "another file": (upload(path="assets/other.js"), "it is the map of index-BIB-3fzx.js, not of other.js"),
    "another map": (upload(name="other.js.map"), "index-BIB-3fzx.js names index-BIB-3fzx.js.map as its map"),
    "more lines": (upload(lambda it: it.update(mappings=";;;;AAAA")), "it maps more lines"),
    "longer lines": (upload(lambda it: it.update(mappings="ggggCAAA")), "it maps columns beyond"),
    "wrong order": (
        upload(lambda it: it.update(mappings="IAAA,DAAA")),
        "its mappings are in the wrong order",
    ),
    "a source too many": (upload(lambda it: it.update(mappings="AgCAA")), "a source that it doesn't have"),
    "a source before the first": (
        upload(lambda it: it.update(mappings="ADAA")),
        "a source that it doesn't have",
    ),
    "two fields": (upload(lambda it: it.update(mappings="AA")), "has not 1, 4 or 5 fields"),
    "a digit that is none": (upload(lambda it: it.update(mappings="A!AA")), "aren't base 64 VLQ"),
    "letters of others": (upload(lambda it: it.update(mappings="AÄAA")), "aren't base 64 VLQ"),
    "a value cut off": (upload(lambda it: it.update(mappings="AAAg")), "aren't base 64 VLQ"),
    "a value cut by a comma": (upload(lambda it: it.update(mappings="AAAg,AAAA")), "aren't base 64 VLQ"),
    "a value too long": (upload(lambda it: it.update(mappings="AAA" + "g" * 7 + "A")), "aren't base 64 VLQ"),
    "an endless value": (upload(lambda it: it.update(mappings="g" * (3 << 20))), "aren't base 64 VLQ"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_one_sentence(case: str) -> None:
    given, expected = REFUSED[case]
    assert expected in sentence(given)


def test_order_and_lines_are_kept_over_the_pieces_of_long_mappings() -> None:
    line = "AAAA" + ",CAAA" * 400_000
    script = b"x" * 400_001
    change = {"mappings": f"{line};{line}", "file": "", "sources": ["a"], "sourcesContent": ["x"]}
    whole = upload(lambda it: it.update(change), script=script + b"\n" + script)
    assert check(whole) == ("sourceMap", "")
    assert "columns beyond" in sentence(
        upload(lambda it: it.update(change), script=script + b"\n" + script[:-2])
    )
    assert "more lines" in sentence(upload(lambda it: it.update(change), script=script))
    wrong = {**change, "mappings": f"{line},DAAA"}
    assert "wrong order" in sentence(upload(lambda it: it.update(wrong), script=script))
