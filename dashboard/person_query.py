"""Queries as the person of a request means them."""

from aiohttp import web

from dashboard.auth.auth import IDENTITY
from query.parse import parse
from query.person import NO_GROUPS, TEAM, WORDS, Person, resolved, words_of
from query.print import to_text
from schemas.errors import QueryError
from storage.errors import BadQuery


def with_person(request: web.Request, text: str) -> str:
    """The text of a query with the names of who asks; one that doesn't parse is left to the reader. Raises BadQuery."""
    if "assignee" not in text:
        return text
    try:
        query = parse(text)
    except QueryError:
        return text
    words, identity = words_of(query), request[IDENTITY]
    groups = [group for group in identity.groups if group not in WORDS]
    if TEAM in words and not groups:
        raise BadQuery("query", NO_GROUPS)
    return to_text(resolved(query, Person(identity.name, groups))) if words else text
