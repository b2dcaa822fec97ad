"""The person who asks, in a query: `assignee:me`, and `assignee:team` for any of the person's groups. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from query.tree import And, Filter, Not, Or, Pattern, Query, leaves

ME: Final = Pattern(("me",))
TEAM: Final = Pattern(("team",))
WORDS: Final = frozenset(part for word in (ME, TEAM) for part in word.parts)
"""No query can ask for a person or a group of such a name."""
NO_PERSON: Final = "assignee:me and assignee:team need someone who has signed in: give a name"
NO_GROUPS: Final = "assignee:team needs a group: your sign-in names none"


class Person(NamedTuple):
    """Who asks."""

    name: str
    groups: Sequence[str]


def words_of(query: Query) -> set[Pattern]:
    """Which of `ME` and `TEAM` the query asks for."""
    named = [leaf for leaf in leaves(query) if isinstance(leaf, Filter) and leaf.key == "assignee"]
    return {ME, TEAM} & {value for leaf in named if not leaf.is_tag for value in leaf.values}


def resolved(query: Query, person: Person) -> Query:
    """The query with the names of the person, who has a group if it asks for `team`."""
    match query:
        case And(items):
            return And(tuple([resolved(item, person) for item in items]))
        case Or(items):
            return Or(tuple([resolved(item, person) for item in items]))
        case Not(item):
            return Not(resolved(item, person))
        case Filter("assignee", False, values):
            meant = {ME: [Pattern((person.name,))], TEAM: [Pattern((group,)) for group in person.groups]}
            names = [name for value in values for name in meant.get(value, [value])]
            return Filter("assignee", is_tag=False, values=tuple(names))
    return query
