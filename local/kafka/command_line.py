"""Command lines for programs in Kafka's jars, tuned for low memory and a quick start."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.kafka.config import cluster_id
from local.local_errors import StartError

FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:MaxMetaspaceSize=128m",
    "-XX:ReservedCodeCacheSize=64m",
    "-Xss512k",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.logFile=System.err",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def class_path(jars: Path) -> str:
    """All jars, as Java takes them."""
    return os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))


def kafka_command(java: str, jars: Path, program: list[str], heap_mb: int) -> list[str]:
    """The command that runs `program` (a main class and its arguments) with a heap of at most `heap_mb`."""
    heap = (f"-Xms{min(64, heap_mb)}m", f"-Xmx{heap_mb}m")
    return [java, *heap, *FLAGS, "-cp", class_path(jars), *program]


def format_data(
    java: str,
    jars: Path,
    config: Path,
    data: Path,
    more: Sequence[str] = ("--standalone",),
    cluster: str = "",
) -> None:
    """Format the data directory of `config`, once, with a new cluster id or that of `cluster`. Raises StartError.

    `more` are further arguments; they say which controllers there are.
    """
    if (data / "meta.properties").exists():
        return
    program = ["kafka.tools.StorageTool", "format", "-t", cluster or cluster_id(), "-c", str(config), *more]
    done = subprocess.run(kafka_command(java, jars, program, 64), capture_output=True, text=True, check=False)
    if done.returncode:
        raise StartError(f"Kafka's data directory {data} could not be formatted:\n{done.stderr[-2000:]}")
