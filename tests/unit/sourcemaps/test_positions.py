"""A map of any content adds a bounded text to a page."""

import json

from sourcemaps.positions import Content, OpenMapping, OpenSourceMap
from sourcemaps.worker_messages import Position, ResolvedFrame

LONG = 10_000


def test_lines_and_names_are_cut() -> None:
    source_map = {
        "version": 3,
        "sources": ["s" * LONG],
        "names": ["f" * LONG],
        "sourcesContent": ["x" * LONG + "\n" + "y" * LONG],
        "mappings": "AAAAA",
    }
    content = Content(json.dumps(source_map).encode(), b"")
    assert OpenSourceMap(content).frames(Position("f", 1, 1)) == [
        ResolvedFrame("f", "s" * 1_000, 1, 1, [], "x" * 1_000, ["y" * 1_000])
    ]


def test_calls_that_were_inlined_into_one_frame_are_cut() -> None:
    lines = ["    1:1:void " + "m" * LONG + "():1:1 -> x"] * 100
    mapping = OpenMapping(Content("\n".join([f"{'a' * LONG} -> b.c:", *lines]).encode(), b""))
    frames = mapping.frames(Position("b.c.x", 1, 1))
    assert (len(frames), max(len(one.function) for one in frames)) == (50, 1_000)
    assert len(mapping.class_name("b.c")) == 1_000
