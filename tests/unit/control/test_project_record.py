"""An older version edits the record of a newer one: fields unknown to it stay."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from control.project_edits import (
    ProjectChanges,
    ViewChanges,
    add_token,
    add_view,
    apply_once,
    change_view,
    create,
    discard,
    remove_view,
    revoke_token,
    undo_discard,
    update,
)
from control.project_record import written_over
from schemas.notifications import NotificationRule, QuietHours
from schemas.projects import GroupingRule, Project, SavedView, decode_project, encode_project

NOW = 1_760_000_000_000
NEWER = {"later": {"a": [1, None]}}
VIEW = "0123456789abcdef"
QUIET = QuietHours("22:00", "06:00")


def a_project() -> Project:
    """A project that has of everything one."""
    return replace(
        add_token(create("shop", now_ms=NOW), NOW),
        grouping_rules=(
            GroupingRule("one", "type:A", ("x",), discard=True),
            GroupingRule("two", "type:B", ("y",)),
        ),
        saved_views=(SavedView(VIEW, "mine", "is:open"),),
        notification_rules=(NotificationRule("7", "new", ("created",), ("chat",), quiet=QUIET),),
        discarded=("0" * 16,),
    )


def newer(part: Any) -> Any:
    """A record in which every object has a field of a newer version."""
    if isinstance(part, dict):
        return {name: newer(value) for name, value in part.items()} | NEWER
    return [newer(item) for item in part] if isinstance(part, list) else part


PROJECT = a_project()
RECORD = msgspec.json.encode(newer(msgspec.json.decode(encode_project(PROJECT))))
KEPT = msgspec.json.decode(RECORD)
RULE = PROJECT.notification_rules[0]
EDITS: dict[str, Callable[[Project], Project]] = {
    "update": lambda old: update(old, ProjectChanges(name="other", payload_retention_days=3)),
    "once": lambda old: apply_once(old, "k", lambda one: update(one, ProjectChanges(retention_days=7))),
    "token": lambda old: add_token(old, NOW),
    "revoke": lambda old: revoke_token(old, old.tokens[0].token, NOW),
    "rules": lambda old: replace(
        old, grouping_rules=(GroupingRule("two", "type:C"), GroupingRule("one", "type:A", ("x",)))
    ),
    "notifications": lambda old: replace(
        old, notification_rules=(replace(RULE, name="all", quiet=replace(QUIET, zone="Europe/Oslo")),)
    ),
    "discard": lambda old: discard(old, ["1" * 16]),
    "undo discard": lambda old: undo_discard(old, old.discarded),
    "add view": lambda old: add_view(old, "f" * 16, ViewChanges(name="new")),
    "change view": lambda old: change_view(old, VIEW, ViewChanges(name="ours")),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_keeps_the_fields_that_a_newer_version_wrote(edit: Callable[[Project], Project]) -> None:
    changed = edit(decode_project(RECORD))
    assert changed != PROJECT
    written = written_over(RECORD, changed)
    assert decode_project(written) == changed
    record = msgspec.json.decode(written)
    assert record["later"] == NEWER["later"]
    for part, name in (("tokens", "token"), ("groupingRules", "name"), ("savedViews", "id")):
        known = {one[name] for one in KEPT[part]}
        assert [one.get("later") for one in record[part]] == [
            NEWER["later"] if one[name] in known else None for one in record[part]
        ]
    [rule] = record["notificationRules"]
    assert rule["later"] == rule["quiet"]["later"] == NEWER["later"]


def test_an_edit_removes_parts_with_all_their_fields() -> None:
    removed = replace(remove_view(decode_project(RECORD), VIEW), grouping_rules=(), notification_rules=())
    record = msgspec.json.decode(written_over(RECORD, removed))
    assert (record["groupingRules"], record["savedViews"], record["notificationRules"]) == ([], [], [])


def test_a_field_that_is_set_to_its_default_leaves_the_record() -> None:
    one = replace(PROJECT.grouping_rules[0], discard=False)
    record = msgspec.json.decode(written_over(RECORD, replace(PROJECT, grouping_rules=(one,))))
    assert record["groupingRules"] == [{"name": "one", "match": "type:A", "fingerprint": ["x"]} | NEWER]


def test_a_record_without_unknown_fields_is_written_as_ever() -> None:
    changed = update(PROJECT, ProjectChanges(name="other"))
    written = msgspec.json.decode(written_over(encode_project(PROJECT), changed))
    assert written == msgspec.json.decode(encode_project(changed))
