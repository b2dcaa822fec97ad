"""The checks of `svc doctor`: each returns a finding with the problem and its fix."""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from local.kafka.java import find_java
from schemas.environment import load
from schemas.errors import BadSetting, CannotRun
from schemas.service_variables import service_variables
from schemas.settings import ALL, DashboardSettings

MIN_FREE_GB = 2.0


class Finding(Struct, frozen=True, omit_defaults=True):
    """The result of a check.

    `fix` says what to do, mostly where the check isn't ok. `svc doctor --json` writes `message` as `said` and
    `fix` as `mend`.
    """

    name: str
    ok: bool
    message: str = field(name="said")
    fix: str = field(name="mend", default="")


def check_settings(environ: Mapping[str, str]) -> Finding:
    """Check the settings of every process."""
    for struct in ALL:
        if (
            struct is DashboardSettings
            and not {"SVC_ADMIN_PASSWORD", "SVC_ADMIN_PASSWORD_FILE"} & environ.keys()
        ):
            continue
        try:
            load(struct, environ)
        except BadSetting as error:
            return Finding(
                "settings", False, str(error), "correct or unset the variable; docs/reference.md lists all"
            )
    ignored = service_variables(environ)
    also = f"; ignored, set by Kubernetes for a service: {', '.join(ignored)}" if ignored else ""
    return Finding("settings", True, f"every variable is known and has a valid value{also}")


def check_disk(data_dir: Path) -> Finding:
    """Check the disk space for the spool and local servers."""
    existing = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    free = shutil.disk_usage(existing).free / 1e9
    detail = f"{free:.1f} GB free at {existing}"
    if free < MIN_FREE_GB:
        fix = f"free {MIN_FREE_GB:.0f} GB, or set SVC_DATA_DIR to another disk"
        return Finding("disk", False, detail, fix)
    return Finding("disk", True, detail)


def check_local_programs() -> list[Finding]:
    """Check the programs with which `svc up` runs its own Kafka and ClickHouse."""
    return [_check_java(), _check_maven(), _check_engine()]


def _check_java() -> Finding:
    try:
        java = find_java()
    except CannotRun as missing:
        return Finding("java", False, "no Java 17 or newer", str(missing))
    return Finding("java", True, f"{java.program}, {java.version.splitlines()[0]}")


def _check_maven() -> Finding:
    program = shutil.which("mvn")
    if program is None:
        return Finding("maven", False, "no mvn", "install Maven (Debian: apt-get install maven)")
    return Finding("maven", True, program)


def _check_engine() -> Finding:
    if importlib.util.find_spec("chdb") is None:
        return Finding("clickhouse engine", False, "no chdb-core", "pip install 'svc-service[local]'")
    return Finding("clickhouse engine", True, "chdb-core is installed")
