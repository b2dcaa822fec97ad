"""`assignee:me` and `assignee:team` as the person means them who asks."""

import pytest

from query.parse import parse
from query.person import ME, TEAM, Person, resolved, words_of
from query.print import to_text
from query.tree import Pattern

ANN = Person('Ann "A*" Lee', ("web", "sre"))


@pytest.mark.parametrize(
    ("text", "words", "meant"),
    [
        ("assignee:me", {ME}, r'assignee:"Ann \"A\*\" Lee"'),
        ("is:open -assignee:team", {TEAM}, "is:open -assignee:[web, sre]"),
        (
            "x OR (y assignee:[me, zoe, team])",
            {ME, TEAM},
            r'x OR (y assignee:["Ann \"A\*\" Lee", zoe, web, sre])',
        ),
        (
            "assignee:[zoe, m*] tags[assignee]:me me user:me",
            set(),
            "assignee:[zoe, m*] tags[assignee]:me me user:me",
        ),
        (r"assignee:\*me has:assignee", set(), r"assignee:\*me has:assignee"),
    ],
)
def test_me_is_the_name_and_team_any_of_the_groups(text: str, words: set[Pattern], meant: str) -> None:
    query = parse(text)
    assert words_of(query) == words
    assert resolved(query, ANN) == parse(meant)
    assert parse(to_text(resolved(query, ANN))) == resolved(query, ANN)
    assert not words_of(resolved(query, ANN))
