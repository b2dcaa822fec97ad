"""Events of fingerprints that a project no longer wants are dropped as its rules drop them."""

from msgspec.structs import replace

from control.project_edits import create, discard, undo_discard
from processors.grouper.fingerprinter import Fingerprinter
from schemas.ids import hex64
from schemas.projects import GroupingRule, ProjectRegistry, encode_project
from tests.unit.processors.made import carried


def test_a_discarded_fingerprint_drops_its_events_until_it_is_kept_again() -> None:
    project = replace(create("shop", now_ms=0), id="1")
    registry = ProjectRegistry()
    registry.apply(b"1", encode_project(project))
    grouper = Fingerprinter(registry)
    _, found = grouper.group(carried(1, kind=1))
    fingerprint = hex64(found.fingerprint)
    dropped = discard(discard(project, [fingerprint]), [fingerprint])
    assert dropped.discarded == (fingerprint,)
    registry.apply(b"1", encode_project(dropped))
    assert grouper.group(carried(2, kind=1))[1].fingerprint == 0
    assert grouper.group(carried(3, kind=2))[1].fingerprint != 0
    registry.apply(b"1", encode_project(undo_discard(dropped, [fingerprint])))
    assert grouper.group(carried(4, kind=1))[1].fingerprint == found.fingerprint


def test_a_rule_that_fails_groups_nothing() -> None:
    rules = (
        GroupingRule(name="broken", match="(type:X", fingerprint=("all",)),
        GroupingRule(name="fine", match="environment:nowhere", fingerprint=("none",)),
    )
    project = replace(create("shop", now_ms=0), id="1")
    registry = ProjectRegistry()
    registry.apply(b"1", encode_project(project))
    grouper = Fingerprinter(registry)
    _, before = grouper.group(carried(1, kind=1))
    registry.apply(b"1", encode_project(replace(project, grouping_rules=rules)))
    _, after = grouper.group(carried(2, kind=1))
    assert after.fingerprint == before.fingerprint
