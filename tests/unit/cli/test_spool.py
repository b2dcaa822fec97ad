"""`svc spool` without a server: its list, and its error without Kafka."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from cli.__main__ import svc
from edge.delivery import segments
from local.ports import free_port
from schemas.chunks import encode_chunk
from schemas.ids import uuid7


def spool(data_dir: Path, *words: str, **environ: str) -> Result:
    return CliRunner().invoke(svc, ["--data-dir", str(data_dir), "spool", *words], env=environ)


def damaged(data_dir: Path) -> Path:
    """A segment with one event and seven bytes that are none, quarantined by worker 3."""
    folder = data_dir / "edge" / "spool" / "3"
    folder.mkdir(parents=True)
    path = folder / (segments.name(1, 1_780_000_000.0) + ".damaged")
    chunk = encode_chunk([(7, uuid7().bytes, 5, "a/1", b"payload")])
    path.write_bytes(segments.frame(chunk) + b"?" * 7)
    return path


def test_an_empty_list_is_reported(tmp_path: Path) -> None:
    assert spool(tmp_path, "list").output == "no quarantined segments\n"
    assert json.loads(spool(tmp_path, "list", "--json").output) == {"segments": []}


def test_quarantined_segments_are_listed_as_text_and_json(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    output = spool(tmp_path, "list").output
    assert all(word in output for word in ("damaged", str(path), "1 events", "7 unreadable bytes", "2026-"))
    (row,) = json.loads(spool(tmp_path, "list", "--json").output)["segments"]
    assert row == {
        "file": str(path),
        "reason": "damaged",
        "replayed": False,
        "createdAt": "2026-05-28T20:26:40.000Z",
        "bytes": path.stat().st_size,
        "events": 1,
        "unreadable": 7,
        "error": None,
        "sent": None,
        "tooLarge": None,
    }


def test_replay_without_kafka_keeps_the_segment_and_ends_with_1(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    done = spool(tmp_path, "replay", "--wait", "0.1", SVC_KAFKA_BOOTSTRAP=address)
    assert done.exit_code == 1
    assert f"svc: Kafka at {address}: KafkaConnectionError" in done.output
    assert path.exists()


def test_replay_asks_for_an_address(tmp_path: Path) -> None:
    done = spool(tmp_path, "replay")
    assert done.exit_code == 2
    assert "set SVC_KAFKA_BOOTSTRAP" in done.output
