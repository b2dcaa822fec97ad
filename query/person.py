"""The person who asks, in a query: `assignee:me`, and `assignee:team` for any of the person's groups. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from query.tree import And, Filter, Not, Or, Pattern, Query, leaves

ME: Final = "me"
TEAM: Final = "team"
NO_PERSON: Final = "assignee:me and assignee:team need someone who has signed in: give a name"
NO_GROUPS: Final = "assignee:team needs a group: your sign-in names none"


class Person(NamedTuple):
    """Who asks."""

    name: str
    groups: Sequence[str]


def persons(query: Query) -> set[str]:
    """Which of `me` and `team` the query asks for."""
    values = {value for leaf in leaves(query) for value in _assignees(leaf)}
    return {word for word in (ME, TEAM) if Pattern((word,)) in values}


def resolved(query: Query, person: Person) -> Query:
    """The query with the names of the person, who has a group if it asks for `team`."""
    match query:
        case And(items):
            return And(tuple([resolved(item, person) for item in items]))
        case Or(items):
            return Or(tuple([resolved(item, person) for item in items]))
        case Not(item):
            return Not(resolved(item, person))
        case Filter(key, is_tag) if values := _assignees(query):
            meant: dict[str, Sequence[str]] = {ME: (person.name,), TEAM: person.groups}
            names = [
                Pattern((name,))
                for value in values
                if value.is_literal
                for name in meant.get(value.parts[0], ())
            ]
            others = [value for value in values if not value.is_literal or value.parts[0] not in meant]
            return Filter(key, is_tag, (*names, *others))
    return query


def _assignees(query: Query) -> tuple[Pattern, ...]:
    match query:
        case Filter("assignee", False, values):
            return values
    return ()
