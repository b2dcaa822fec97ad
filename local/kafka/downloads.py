"""Kafka's jars: fetched once with Maven, verified against a manifest of SHA-256 sums, stored in a cache directory."""

import fcntl
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.local_errors import DownloadError, MissingProgram

KAFKA_VERSION = "4.3.1"
POM = Path(__file__).with_name("pom.xml")
MANIFEST = "manifest.sha256"
JARS = 31  # the length of the progress bar
JAR_LINE = re.compile(r"(?:Downloading|Downloaded|Copying)\b.*?([\w.\-]+\.jar)\b")
MAVEN_MISSING = (
    "Kafka's jars are fetched with Maven and `mvn` was not found: install it (Debian: apt-get install maven), "
    "or name a running Kafka in SVC_KAFKA_BOOTSTRAP"
)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a cache directory that processes share."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def checksums(directory: Path) -> str:
    """The manifest of the jars that the directory has now."""
    lines = []
    for jar in sorted(directory.glob("*.jar")):
        with jar.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {jar.name}\n")
    return "".join(lines)


def is_whole(directory: Path) -> bool:
    """True if the jars in `directory` match its manifest exactly."""
    manifest = directory / MANIFEST
    return manifest.exists() and manifest.read_text() == checksums(directory)


def jars_in(cache: Path) -> Path:
    """The folder of this version's jars in a cache directory."""
    return cache.resolve() / f"kafka-{KAFKA_VERSION}"


def _run_maven(target: Path, console: Console) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingProgram(MAVEN_MISSING)
    command = [maven, "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    lines: list[str] = []
    seen: set[str] = set()
    with (
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as run,
    ):
        bar = progress.add_task(f"Apache Kafka {KAFKA_VERSION}", total=JARS)
        for line in run.stdout or ():
            lines.append(line)
            if match := JAR_LINE.search(line):
                seen.add(match[1])
                progress.update(bar, completed=min(len(seen), JARS))
    if run.returncode:
        error = "".join(line for line in lines if "[ERROR]" in line)[:2000] or "".join(lines[-10:])
        raise DownloadError(
            f"Maven could not fetch Apache Kafka {KAFKA_VERSION} ({run.returncode}):\n{error}"
        )


def kafka_jars(cache: Path) -> Path:
    """The directory with Kafka's jars in `cache`; missing or damaged jars are fetched.

    Raises MissingProgram without Maven and DownloadError if Maven fails. Processes may call it concurrently.
    """
    console = Console(stderr=True)
    target = jars_in(cache)
    with locked(cache):
        if is_whole(target):
            return target
        if not console.is_terminal:
            console.print(f"fetching Apache Kafka {KAFKA_VERSION} with Maven (about 35 MB)")
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as scratch:
            fetched = Path(scratch).resolve() / "jars"
            _run_maven(fetched, console)
            if not any(fetched.glob(f"kafka_2.13-{KAFKA_VERSION}.jar")):
                raise DownloadError(f"Maven left no kafka_2.13-{KAFKA_VERSION}.jar in {fetched}")
            (fetched / MANIFEST).write_text(checksums(fetched))
            shutil.rmtree(target, ignore_errors=True)
            fetched.replace(target)
    return target
