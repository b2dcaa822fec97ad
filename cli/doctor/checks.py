"""The checks of `svc doctor`: each looks at one thing and says what is wrong and how to mend it."""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from local.kafka.java import find_java
from schemas.errors import BadSetting, CannotRun
from schemas.service_variables import service_variables
from schemas.settings import ALL, DashboardSettings, load

LEAST_FREE_GB = 2.0


class Finding(Struct, frozen=True, omit_defaults=True):
    """What one check found; `mend` says what to do when it isn't ok."""

    name: str
    ok: bool
    said: str
    mend: str = ""


def check_settings(environ: Mapping[str, str]) -> Finding:
    """Every process's settings can be read."""
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
    passed_over = service_variables(environ)
    also = f"; passed over, made by Kubernetes for a service: {', '.join(passed_over)}" if passed_over else ""
    return Finding("settings", True, f"every variable is known and has a good value{also}")


def check_disk(data_dir: Path) -> Finding:
    """There is room for the spool and local servers."""
    place = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    free = shutil.disk_usage(place).free / 1e9
    said = f"{free:.1f} GB free at {place}"
    if free < LEAST_FREE_GB:
        return Finding("disk", False, said, f"free {LEAST_FREE_GB:.0f} GB, or put SVC_DATA_DIR elsewhere")
    return Finding("disk", True, said)


def check_local_programs() -> list[Finding]:
    """What `svc up` needs to run a Kafka and a ClickHouse of its own."""
    return [_check_java(), _check_maven(), _check_engine()]


def _check_java() -> Finding:
    try:
        java = find_java()
    except CannotRun as missing:
        return Finding("java", False, "no Java 17 or newer", str(missing))
    return Finding("java", True, f"{java.program}, {java.version.splitlines()[0]}")


def _check_maven() -> Finding:
    found = shutil.which("mvn")
    if found is None:
        return Finding("maven", False, "no mvn", "install Maven (Debian: apt-get install maven)")
    return Finding("maven", True, found)


def _check_engine() -> Finding:
    if importlib.util.find_spec("chdb") is None:
        return Finding("clickhouse engine", False, "no chdb-core", "pip install 'svc-service[local]'")
    return Finding("clickhouse engine", True, "chdb-core is installed")
