"""The check of `svc doctor` and `svc up` for ClickHouse rows lost to a full or failing disk."""

from collections.abc import Sequence
from typing import Final

from cli.doctor.checks import Finding
from storage.client import ClickHouseError, open_client
from storage.repair.damage import BrokenPart, broken_parts, without_issue

NAME: Final = "stored rows"
REPAIR: Final = "run `svc reconcile --repair`"
_NAMED: Final = 3


def check_damage(url: str) -> list[Finding]:
    """One finding about the stored rows; none if ClickHouse doesn't answer, which another check reports."""
    try:
        client = open_client(url)
        try:
            return [damage_finding(broken_parts(client), without_issue(client))]
        finally:
            client.close()
    except ClickHouseError:
        return []


def damage_finding(broken: Sequence[BrokenPart], lost_issues: int) -> Finding:
    """The finding for broken parts and fingerprints without an issue."""
    if broken:
        names = ", ".join(f"{part.table} {part.name}" for part in broken[:_NAMED])
        more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        removals = "; ".join(part.removal for part in broken[:_NAMED])
        detail = f"ClickHouse detached broken parts, as after a full disk; their rows may be missing: {names}{more}"
        return Finding(NAME, False, detail, f"{REPAIR}; once nothing differs, remove them: {removals}")
    if lost_issues:
        return Finding(NAME, False, f"{lost_issues:,} fingerprints have events and no issue", REPAIR)
    return Finding(NAME, True, "no part is broken, and every event has its issue")
