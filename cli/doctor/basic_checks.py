"""The checks of `svc doctor`: each returns a finding with the problem and its fix."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from local.disk_space import free_bytes
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.service_variables import service_variables
from schemas.settings import ALL, DashboardSettings

MIN_FREE_GB = 2.0
CORRECT_SETTING = "correct or unset the variable; docs/reference.md lists all"


class Finding(Struct, frozen=True, omit_defaults=True):
    """The result of a check.

    `fix` is the action to take, mostly where the check isn't ok. `svc doctor --json` writes `message` as `said` and
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
            return Finding("settings", False, str(error), CORRECT_SETTING)
    ignored = service_variables(environ)
    also = f"; ignored, set by Kubernetes for a service: {', '.join(ignored)}" if ignored else ""
    return Finding("settings", True, f"every variable is known and has a valid value{also}")


def check_disk(data_dir: Path) -> Finding:
    """Check the disk space for the spool and local servers."""
    free = free_bytes(data_dir) / 1e9
    detail = f"{free:.1f} GB free at {data_dir}"
    if free < MIN_FREE_GB:
        fix = f"free {MIN_FREE_GB:.0f} GB, or set SVC_DATA_DIR to another disk"
        return Finding("disk", False, detail, fix)
    return Finding("disk", True, detail)
