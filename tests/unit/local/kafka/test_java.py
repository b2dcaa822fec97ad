"""The Java version, from the output of `java -version`."""

from pathlib import Path

import pytest

from local.kafka.java import find_java, major
from local.local_errors import MissingProgram


@pytest.mark.parametrize(
    ("version_text", "feature"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("command not found", 0),
    ],
)
def test_feature_release_is_read_from_any_form_of_version(version_text: str, feature: int) -> None:
    assert major(version_text) == feature


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_first(tmp_path: Path) -> None:
    program = fake_java(tmp_path, "21.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"}) == str(program)


def test_old_java_is_passed_over_and_the_error_names_the_one_to_install(tmp_path: Path) -> None:
    fake_java(tmp_path, "11.0.2")
    with pytest.raises(MissingProgram, match="openjdk-17-jre-headless"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"})
