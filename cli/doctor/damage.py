"""`svc doctor` and `svc up`: whether a full or failing disk has cost rows of ClickHouse."""

from collections.abc import Sequence
from typing import Final

from cli.doctor.checks import Finding
from storage.client import ClickHouseError, open_client
from storage.repair.damage import BrokenPart, broken_parts, without_issue

NAME: Final = "stored rows"
REPAIR: Final = "run `svc reconcile --repair`"
_NAMED: Final = 3


def check_damage(url: str) -> list[Finding]:
    """One finding about the rows behind SVC_CLICKHOUSE_URL; none where ClickHouse doesn't answer, which another check says."""
    try:
        client = open_client(url)
        try:
            return [judged(broken_parts(client), without_issue(client))]
        finally:
            client.close()
    except ClickHouseError:
        return []


def judged(broken: Sequence[BrokenPart], lost_issues: int) -> Finding:
    """What broken parts and fingerprints without an issue mean."""
    if broken:
        names = ", ".join(f"{part.table} {part.name}" for part in broken[:_NAMED])
        more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        removals = "; ".join(part.removal for part in broken[:_NAMED])
        said = f"ClickHouse has set aside broken parts, as after a full disk, and their rows may be missing: {names}{more}"
        return Finding(NAME, False, said, f"{REPAIR}; once nothing differs, remove them: {removals}")
    if lost_issues:
        return Finding(NAME, False, f"{lost_issues:,} fingerprints have events and no issue", REPAIR)
    return Finding(NAME, True, "no part is broken, and every event has its issue")
