from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from control.change_log import change_of, changes_between, unconfirmed
from control.key_edits import NewKey, add_key
from control.project_edits import apply_once, create, discard, revoke_token
from schemas.change_records import MAX_TEXT, Author, ChangeKind, is_change
from schemas.issues import Activity, encode_json
from schemas.projects import GroupingRule, OwnerRule, Project
from schemas.times import DAY_MS
from storage.tables.migrations.migrate import migrations

ANN = Author("ann", "page")
SHOP = create("shop", now_ms=0)


def fields(text: str) -> object:
    return msgspec.json.decode(text) if text else None


def test_each_kind_has_the_fields_that_differ_before_and_after() -> None:
    after = replace(SHOP, name="web", retention_days=7, owners=(OwnerRule("", "zoe"),))
    owners, project = changes_between(SHOP, after, ANN, 5)
    assert (project.kind, project.project_id, project.by, project.via) == (
        "projectChanged", SHOP.id, "ann", "page",
    )  # fmt: skip
    assert fields(project.before) == {"name": "shop", "retentionDays": 90}
    assert fields(project.after) == {"name": "web", "retentionDays": 7}
    assert (owners.kind, fields(owners.before)) == ("ownersChanged", {"owners": []})
    assert fields(owners.after) == {"owners": [{"match": "", "assignee": "zoe"}]}


def test_of_lists_only_what_differs_is_shown_or_all_of_another_order() -> None:
    one, two, other = (GroupingRule(name, "") for name in ("one", "two", "other"))
    old = replace(SHOP, grouping_rules=(one, two))
    [replaced] = changes_between(old, replace(old, grouping_rules=(one, other)), ANN, 5)
    assert (replaced.before, replaced.after) == (
        '{"groupingRules":[{"name":"two","match":""}]}',
        '{"groupingRules":[{"name":"other","match":""}]}',
    )
    [turned] = changes_between(old, replace(old, grouping_rules=(two, one)), ANN, 5)
    assert turned.before.index("one") < turned.before.index("two")
    assert turned.after.index("two") < turned.after.index("one")


@pytest.mark.parametrize("kind", ["projectCreated", "tokenRevoked"])
def test_a_token_is_shown_by_its_end(kind: str) -> None:
    token = SHOP.tokens[0].token
    revoked = revoke_token(SHOP, token, 5)
    old, new = (None, SHOP) if kind == "projectCreated" else (SHOP, revoked)
    [change] = changes_between(old, new, ANN, 5)
    assert change.kind == kind
    assert f"…{token[-4:]}" in change.after
    assert token[:-4] not in change.before + change.after


def test_a_long_text_is_cut() -> None:
    [change] = changes_between(SHOP, discard(SHOP, [f"{n:016x}" for n in range(1000)]), ANN, 5)
    assert (change.kind, len(change.after)) == ("discardChanged", MAX_TEXT)


def test_a_request_repeated_within_a_day_has_the_same_id_and_others_have_not() -> None:
    def rename(name: str, request: str) -> Project:
        return apply_once(SHOP, request, lambda old: replace(old, name=name))

    ids = [
        changes_between(SHOP, rename("web", request), ANN, at)[0].id
        for at, request in ((0, "a:1"), (1, "a:1"), (2, "b:1"), (3, ""), (4, ""), (DAY_MS, "a:1"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 5
    assert changes_between(SHOP, apply_once(SHOP, "c:1", lambda old: old), ANN, 5) == []


def test_a_doubt_names_its_change_and_is_a_record_beside_it() -> None:
    change = change_of("rulesChanged", ANN, 5, "7")
    doubt = unconfirmed(change)
    assert doubt.id != change.id
    assert fields(doubt.after) == {"kind": "rulesChanged", "id": change.id}


def test_the_analysts_view_names_every_kind() -> None:
    (view,) = (each.sql for each in migrations() if each.name == "analyst_changes")
    assert ", ".join(get_args(ChangeKind)) in view


def test_a_change_of_a_project_is_told_from_one_of_an_issue() -> None:
    assert is_change(encode_json(change_of("signedIn", ANN, 5)))
    assert not is_change(encode_json(Activity("a", "ff", "7", "created", "", "2026-01-02T03:04:05Z")))


def test_a_key_is_shown_without_its_hash() -> None:
    keyed = add_key(SHOP, NewKey("ci", ("read",)), "svc_sk_x", "ann", 5)
    [change] = changes_between(SHOP, keyed, ANN, 5)
    assert change.kind == "keyCreated"
    assert "hash" not in change.after
    assert keyed.keys[0].hash not in change.after
