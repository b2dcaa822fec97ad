"""What grouping has learnt, in words."""

import pytest

from dashboard.view.learnt import HINTS, learnt_sentence
from schemas.projects import LearntFact


def marked(fact: LearntFact) -> str:
    """The sentence with code in backticks, and what is bold in asterisks."""
    texts = []
    for piece in learnt_sentence(fact).pieces:
        mark = "**" if piece.is_bold else "`" if piece.is_code else ""
        texts.append(f"{mark}{piece.text}{mark}")
    return "".join(texts)


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        (
            LearntFact("helper", "save in orm.py", callers=41, messages=1380),
            "`save in orm.py` is a helper here: 41 callers, 1,380 messages",
        ),
        (
            LearntFact("helper", "save in orm.py", callers=1, messages=1),
            "`save in orm.py` is a helper here: 1 caller, 1 message",
        ),
        (
            LearntFact("varies", "no such customer <*>", 3, messages=17),
            "In `no such customer `**<*>** a word varies: 17 values",
        ),
        (
            LearntFact("varies", "shard=<*> of <*> lost <*> rows", 4, messages=8),
            "In `shard=<*> of <*> lost `**<*>**` rows` a word varies: 8 values",
        ),
        (
            LearntFact("telling", "interface <*> is down", values=("eth0", "wlan0"), messages=40),
            "In `interface `**<*>**` is down` the values `eth0`, `wlan0` tell problems apart",
        ),
        (
            LearntFact("telling", "<*> of <*> in <*>", 1, ("one", "two", "three"), messages=40),
            "In `<*> of `**<*>**` in <*>` the values `one`, `two`, `three` tell problems apart",
        ),
        (
            LearntFact("telling", "<*> failed", values=("disk", "net"), messages=16),
            "In **<*>**` failed` the values `disk`, `net` tell problems apart",
        ),
    ],
)
def test_a_fact_is_a_sentence(fact: LearntFact, sentence: str) -> None:
    assert marked(fact) == sentence
    assert learnt_sentence(fact).hint == HINTS[fact.kind]


def test_what_comes_from_events_is_never_taken_for_words_of_ours() -> None:
    for fact in (
        LearntFact("helper", "evil"),
        LearntFact("varies", "evil <*> evil", 1),
        LearntFact("telling", "evil <*>", 0, ("evil", "evil")),
    ):
        assert all(piece.is_code for piece in learnt_sentence(fact).pieces if "evil" in piece.text)
