"""Frames that maps resolve replace those that were sent; what was sent decides the group."""

import json
from typing import Any

import msgspec
import pytest

from grouping.fingerprint import fingerprint
from grouping.fingerprint.event_view import GroupingEvent
from schemas.read_api import ArtifactLink, IssueSource
from sourcemaps.event_frames import SentEvent, by_map, decode_sent, resolved_error, source_of
from sourcemaps.worker_messages import ResolvedFrame
from tests.builds import ESBUILD, R8_STACK, VITE, Build, event_of

FOUND = ResolvedFrame("totalOf", "src/cart.ts", 9, 26, ["for"], "  total += item.price!.cents;", ["}"])


@pytest.mark.parametrize("builds", [VITE, ESBUILD], ids=["vite", "esbuild"])
def test_two_builds_of_one_error_are_one_issue(builds: tuple[Build, Build]) -> None:
    first, second = (
        fingerprint(msgspec.convert(build.event(1, 1_760_000_000_000), GroupingEvent)) for build in builds
    )
    assert first.parts == second.parts


FRAME = {"function": "t", "file": "https://shop.example/app.min.js", "line": 1, "column": 51, "inApp": True}


def sent(*frames: dict[str, Any], platform: str = "javascript") -> tuple[bytes, SentEvent]:
    payload = json.dumps(event_of("shop@1.0.0+1", 1, 1_760_000_000_000, list(frames), platform)).encode()
    return payload, decode_sent(payload)


def test_frames_are_replaced_in_all_errors_of_the_chain() -> None:
    cause = {"type": "E", "message": "", "stack": [FRAME], "cause": None}
    error = {"type": "E", "message": "", "stack": [FRAME, FRAME], "cause": cause}
    found = {(0, 1): [FOUND], (1, 0): [FOUND, FOUND]}
    resolved = resolved_error(json.dumps({"error": error}).encode(), found, {"E": "Missing"})
    assert [frame["function"] for frame in resolved["stack"]] == ["t", "totalOf"]
    assert [frame["line"] for frame in resolved["cause"]["stack"]] == [9, 9]
    assert resolved["type"] == "Missing"
    assert resolved["stack"][1] == {
        "function": "totalOf",
        "file": "src/cart.ts",
        "line": 9,
        "column": 26,
        "inApp": True,
        "preContext": ["for"],
        "contextLine": "  total += item.price!.cents;",
        "postContext": ["}"],
    }


def test_a_library_is_not_of_the_application_and_no_culprit() -> None:
    library = ResolvedFrame("dispatch", "node_modules/react-dom/index.js", 3)
    payload, event = sent(FRAME, FRAME)
    found = {(0, 0): [library], (0, 1): [FOUND]}
    assert [frame["inApp"] for frame in resolved_error(payload, found, {})["stack"]] == [False, True]
    assert source_of(event, found) == IssueSource("totalOf in src/cart.ts:9", "total += item.price!.cents;")
    assert source_of(event, {(0, 0): [library]}) is None
    assert source_of(event, {(0, 1): [FOUND]}) is None


def test_a_build_without_a_map_is_named_once_and_source_is_not() -> None:
    _, event = sent(FRAME, FRAME, FRAME | {"file": "src/cart.ts", "line": 9})
    problem = "shop@1.0.0+1 has no source map of https://shop.example/app.min.js"
    assert by_map(event, []) == ([], [problem])


def test_a_frame_without_a_column_is_left_alone() -> None:
    link = ArtifactLink("shop@1.0.0+1", "app.min.js", "sourceMap", "a")
    assert by_map(sent(FRAME | {"column": None})[1], [link])[0] == []
    assert list(by_map(sent(FRAME)[1], [link])[0][0].positions) == [(0, 0)]


def test_the_map_of_a_file_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[str] = []
    monkeypatch.setattr("sourcemaps.event_frames.map_of", lambda file, *_: files.append(file))
    by_map(sent(*[FRAME] * 100)[1], [])
    assert files == [FRAME["file"]]


def test_the_newest_mapping_of_the_release_takes_the_frames_of_android() -> None:
    links = [ArtifactLink("shop@1.0.0+1", "mapping.txt", "r8", digest) for digest in ("new", "old")]
    maps, _ = by_map(sent(*R8_STACK, platform="android")[1], links)
    assert [(one.link.digest, len(one.positions)) for one in maps] == [("new", 3)]
    assert by_map(sent(*R8_STACK)[1], links)[0] == []
