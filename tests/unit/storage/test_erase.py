from datetime import UTC, date, datetime

import pytest

from storage.maintain.erase import ledger
from storage.maintain.erase.erase_scope import WANTED, bucket, listed_scope, stored_scope
from storage.maintain.erase.ledger import Erasure
from storage.maintain.erase.sizes import Sizes, compared
from storage.tables.rollups import ROLLUPS, Rollup

SALT = "00" * 16
ID = "6f1c6d0e-0000-4000-8000-000000000000"


def erasure(user: str, salt: str = SALT, stage: ledger.Stage = "done") -> Erasure:
    digest = ledger.digest(user, salt) if user else ""
    return Erasure(7, ID, "user", stage, salt if user else "", digest, "ann", datetime.now(UTC))


@pytest.mark.parametrize(("one", "other"), [("u", "v"), ("u", "u "), ("\u00e4", "a\u0308")])
def test_only_the_user_is_found_again_by_the_id(one: str, other: str) -> None:
    known = [erasure(one)]
    assert ledger.of_user(known, one) == known
    assert ledger.of_user(known, other) == []


def test_the_same_user_has_another_digest_under_another_salt() -> None:
    assert ledger.digest("u", SALT) != ledger.digest("u", "11" * 16)
    known = [erasure("u"), erasure("u", "11" * 16), erasure("v")]
    assert ledger.of_user(known, "u") == known[:2]


def test_an_erasure_that_only_listed_took_nothing() -> None:
    assert ledger.of_user([erasure("u", stage="listing")], "u") == []
    assert len(ledger.of_user([erasure("u", stage="deleting")], "u")) == 1


def test_a_project_has_one_salt() -> None:
    assert ledger.salt_of([erasure(""), erasure("u")]) == SALT
    fresh = {ledger.salt_of([]) for _ in range(3)}
    assert len(fresh) == 3
    assert all(len(bytes.fromhex(salt)) == 16 for salt in fresh)


@pytest.mark.parametrize("rollup", ROLLUPS, ids=lambda rollup: rollup.table)
def test_the_keys_of_a_rollup_are_those_that_the_lists_know(rollup: Rollup) -> None:
    scope = listed_scope(7, ID, [date(2026, 11, 16)])
    where = scope.keys(rollup)
    assert where.startswith("project_id = 7 AND (")
    assert "environment" not in where
    assert "toMonday(" in where


def test_no_condition_holds_the_users_id() -> None:
    scope = stored_scope(7)
    for where in (scope.rows("events"), scope.rows("payloads"), *(scope.keys(rollup) for rollup in ROLLUPS)):
        assert WANTED in where


def test_shares_of_the_tags_are_apart_and_together_whole() -> None:
    whole = listed_scope(7, ID)
    shares = [bucket(whole, number, 3).tags for number in range(3)]
    assert all(share.startswith(whole.tags) for share in shares)
    assert {share.rpartition(" = ")[2] for share in shares} == {"0", "1", "2"}


def test_a_table_that_is_not_there_any_more_has_no_rows() -> None:
    (one,) = compared(["events"], Sizes({"events": 5}, {"events": 100}), Sizes({}, {}))
    assert (one.rows_before, one.rows_after, one.bytes_before, one.bytes_after) == (5, 0, 100, 0)
