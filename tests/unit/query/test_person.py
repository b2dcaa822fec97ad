"""`assignee:me` and `assignee:team` as the person means them who asks."""

import pytest

from query.parse import parse
from query.person import Person, persons, resolved
from query.print import to_text

ANN = Person('Ann "A*" Lee', ("web", "sre"))


@pytest.mark.parametrize(
    ("text", "words", "meant"),
    [
        ("assignee:me", {"me"}, r'assignee:"Ann \"A\*\" Lee"'),
        ("is:open -assignee:team", {"team"}, "is:open -assignee:[web, sre]"),
        (
            "x OR (y assignee:[me, zoe, team])",
            {"me", "team"},
            r'x OR (y assignee:["Ann \"A\*\" Lee", web, sre, zoe])',
        ),
        (
            "assignee:[zoe, m*] tags[assignee]:me me user:me",
            set(),
            "assignee:[zoe, m*] tags[assignee]:me me user:me",
        ),
        (r"assignee:\*me has:assignee", set(), r"assignee:\*me has:assignee"),
    ],
)
def test_me_is_the_name_and_team_any_of_the_groups(text: str, words: set[str], meant: str) -> None:
    query = parse(text)
    assert persons(query) == words
    assert resolved(query, ANN) == parse(meant)
    assert parse(to_text(resolved(query, ANN))) == resolved(query, ANN)
    assert not persons(resolved(query, ANN))
