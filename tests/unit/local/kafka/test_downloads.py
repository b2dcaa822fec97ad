"""The cache of Kafka's jars."""

from pathlib import Path

from local.kafka.downloads import JAR_LINE, MANIFEST, checksums, is_whole


def filled(folder: Path) -> Path:
    (folder / "a.jar").write_bytes(b"one")
    (folder / "b.jar").write_bytes(b"two")
    (folder / MANIFEST).write_text(checksums(folder))
    return folder


def test_jars_that_match_their_manifest_are_whole(tmp_path: Path) -> None:
    assert is_whole(filled(tmp_path))


def test_jar_that_is_cut_off_missing_or_foreign_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "a.jar").write_bytes(b"on")
    assert not is_whole(tmp_path)
    (tmp_path / "a.jar").unlink()
    assert not is_whole(tmp_path)
    (tmp_path / "a.jar").write_bytes(b"one")
    assert is_whole(tmp_path)
    (tmp_path / "c.jar").write_bytes(b"three")
    assert not is_whole(tmp_path)


def test_empty_cache_is_not_whole(tmp_path: Path) -> None:
    assert not is_whole(tmp_path)


def test_jars_are_counted_in_the_output_of_maven() -> None:
    output = [
        "[INFO] Copying kafka-server-4.3.1.jar to /d/kafka-server-4.3.1.jar",
        "Downloaded from central: http://host/org/a/1/a-1.jar (25 kB at 2.5 MB/s)",
        "Downloaded from central: http://host/org/a/1/a-1.pom (2 kB at 2.5 MB/s)",
    ]
    found = [JAR_LINE.search(line) for line in output]
    assert [match and match[1] for match in found] == ["kafka-server-4.3.1.jar", "a-1.jar", None]
