"""What the address of a list asks for, and addresses that ask for something else."""

from typing import Final, get_args
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from dashboard.http.errors import invalid
from dashboard.http.inputs import is_text
from dashboard.pages.time_ranges import PageRange, read_span
from dashboard.view.filters import field_query, renamed, state_of_query
from query.parse import parse
from query.tree import STATES
from schemas.errors import QueryError
from storage.reader.answers import KeyWarning, Sort

SORTS: Final = get_args(Sort)


class ListParameters(Struct, frozen=True):
    """Query box, environment, state, range, order and page of a list."""

    query: str
    environment: str
    state: str
    span: PageRange
    sort: Sort
    cursor: str | None

    @property
    def text(self) -> str:
        """All of it in the query language; `query` must parse by itself first."""
        parts = [f"({self.query})" if self.query.strip() else ""]
        parts.append(field_query("environment", self.environment) if self.environment else "")
        parts.append(f"is:{self.state}" if self.state else "")
        return " ".join(filter(None, parts))

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the range limits the list."""
        return bool(self.query.strip() or self.environment or self.state)

    @property
    def tab(self) -> str:
        """The state that the list shows, whether its tab or its query says so; empty for all."""
        return self.state or state_of_query(self.query)[0]

    def tab_link(self, state: str) -> str:
        """The address of the list in another state."""
        return self.link(state=state, query=state_of_query(self.query)[1])

    def link(self, **changes: str) -> str:
        """The part of an address after `?` for this list with changes; the page begins anew unless `cursor` is given."""
        kept = {
            "query": self.query,
            "environment": self.environment,
            "state": self.state,
            "sort": "" if self.sort == "lastSeen" else self.sort,
            **self.span.parameters,
        }
        return "?" + urlencode({key: value for key, value in (kept | changes).items() if value})


class Doubt(Struct, frozen=True):
    """A key that no event has; for each key like it, its name and the list that asks for it instead."""

    key: str
    nearest: list[tuple[str, str]]


def doubts_of(asked: ListParameters, warnings: list[KeyWarning]) -> list[Doubt]:
    """The warnings of a list's query as its page tells them."""
    return [
        Doubt(
            one.key, [(name, asked.link(query=renamed(asked.query, one.key, name))) for name in one.nearest]
        )
        for one in warnings
    ]


class QueryFault(Struct, frozen=True):
    """Why a text is no query: in words, and the text before and from the place where it goes wrong."""

    words: str
    before: str
    rest: str


def query_fault(query: str) -> QueryFault | None:
    """What keeps a text from being a query."""
    try:
        parse(query)
    except QueryError as error:
        words = f"This can't be read as a query. Expected where it is marked: {error.expected}."
        return QueryFault(words, query[: error.position], query[error.position :])
    return None


def read_parameters(request: web.Request, now_ms: int) -> ListParameters:
    """What the address asks for. Raises Refused for what can't be asked."""
    fields = dict(request.query)
    for name, value in fields.items():
        if not is_text(value):
            raise invalid(name, "must be text")
    sort, state = fields.get("sort", "lastSeen"), fields.get("state", "")
    return ListParameters(
        query=fields.get("query", ""),
        environment=fields.get("environment", ""),
        state=state if state in STATES else "",
        span=read_span(fields, now_ms),
        sort=sort if sort in SORTS else "lastSeen",  # type: ignore[arg-type]
        cursor=fields.get("cursor") or None,
    )
