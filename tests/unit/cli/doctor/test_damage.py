"""The finding about rows lost to a full disk."""

from datetime import UTC, datetime

from cli.doctor.damage_check import damage_finding
from storage.maintain.audit.damage import BrokenPart


def broken(name: str) -> BrokenPart:
    """A part of `issues` that was detached as broken."""
    return BrokenPart("svc", "issues", name, datetime(2026, 11, 22, tzinfo=UTC))


def test_nothing_broken_and_no_issue_missing_is_well() -> None:
    assert damage_finding([], 0).ok


def test_a_broken_part_is_named_with_its_repair_and_its_removal() -> None:
    finding = damage_finding([broken(f"broken-on-start_all_{n}_{n}_0") for n in range(5)], 3)
    assert not finding.ok
    assert "issues broken-on-start_all_0_0_0" in finding.message
    assert "and 2 more" in finding.message
    assert "svc reconcile --repair" in finding.fix
    assert "ALTER TABLE svc.issues DROP DETACHED PART 'broken-on-start_all_0_0_0'" in finding.fix


def test_events_without_their_issue_are_reported() -> None:
    finding = damage_finding([], 35)
    assert not finding.ok
    assert "35 fingerprints" in finding.message
