"""Query parameters of the list pages, and links with other parameters."""

from typing import Final, get_args
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from dashboard.http.http_errors import invalid
from dashboard.http.inputs import is_text
from dashboard.time_ranges import PageRange, read_page_range
from dashboard.view.filters import field_query, rename_key, split_state
from query.parse import parse
from query.tree import STATES
from schemas.errors import QueryError
from schemas.read_api import KeyWarning, Sort

SORTS: Final = get_args(Sort)
PLAIN_STATE: Final = "open"
PLAIN_SORT: Final[Sort] = "priority"
"""The defaults of a link without state and sort: open issues, the most urgent first."""
ALL_STATES: Final = "all"


class ListParameters(Struct, frozen=True):
    """Query box, environment, state, time range, sort order and page of a list.

    `plain_state` is the state of a link without one.
    """

    query: str
    environment: str
    state: str
    time_range: PageRange
    sort: Sort
    cursor: str | None
    plain_state: str = ""

    @property
    def text(self) -> str:
        """The whole filter in the query language; callers check first that `query` parses by itself."""
        terms = [f"({self.query})" if self.query.strip() else ""]
        terms.append(field_query("environment", self.environment) if self.environment else "")
        terms.append(f"is:{self.state}" if self.state else "")
        return " ".join(filter(None, terms))

    @property
    def of_events(self) -> str:
        """The part of the filter that an issue's page keeps: which of its events are meant.

        `is:open` says nothing of them.
        """
        terms = [split_state(self.query)[1].strip()]
        terms.append(field_query("environment", self.environment) if self.environment else "")
        return " ".join(filter(None, terms))

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the time range filters the list."""
        return bool(self.query.strip() or self.environment or self.state != self.plain_state)

    @property
    def tab(self) -> str:
        """The state of the list, from its parameter or its query; empty for all."""
        return self.state or split_state(self.query)[0]

    @property
    def named_sort(self) -> str:
        """The sort order as links have it; empty for the plain one."""
        return "" if self.sort == PLAIN_SORT else self.sort

    def tab_link(self, state: str) -> str:
        return self.link(state=state or ALL_STATES, query=split_state(self.query)[1])

    def link(self, **changes: str) -> str:
        """Query string of this list with changes; it starts at the first page unless `cursor` is given."""
        parameters = {
            "query": self.query,
            "environment": self.environment,
            "state": "" if self.state == self.plain_state else self.state or ALL_STATES,
            "sort": self.named_sort,
            **self.time_range.parameters,
        }
        return "?" + urlencode({key: value for key, value in (parameters | changes).items() if value})


class UnknownKey(Struct, frozen=True):
    """A key that no event has, and similar keys with links to the list that uses them instead."""

    key: str
    suggestions: list[tuple[str, str]]


def unknown_keys(parameters: ListParameters, warnings: list[KeyWarning]) -> list[UnknownKey]:
    """The warnings of a list's query, with links."""

    def link(key: str, name: str) -> str:
        return parameters.link(query=rename_key(parameters.query, key, name))

    return [
        UnknownKey(warning.key, [(name, link(warning.key, name)) for name in warning.nearest])
        for warning in warnings
    ]


class SyntaxProblem(Struct, frozen=True):
    """Why a query doesn't parse, and its text before and from the error's position."""

    message: str
    before: str
    after: str


def syntax_problem(query: str) -> SyntaxProblem | None:
    """The syntax error of a query, if any."""
    try:
        parse(query)
    except QueryError as error:
        message = f"This query has a syntax error. Expected at the mark: {error.expected}."
        return SyntaxProblem(message, query[: error.position], query[error.position :])
    return None


def read_parameters(request: web.Request, now_ms: int, plain_state: str = "") -> ListParameters:
    """The parameters of a list page; a query that names states is about these alone."""
    return parameters_of(dict(request.query), now_ms, plain_state)


def parameters_of(fields: dict[str, str], now_ms: int, plain_state: str = "") -> ListParameters:
    """The parameters of a list's query string. Raises HttpError."""
    for name, value in fields.items():
        if not is_text(value):
            raise invalid(name, "must be text")
    sort, query = fields.get("sort", PLAIN_SORT), fields.get("query", "")
    plain_state = "" if "is:" in query else plain_state
    state = fields.get("state", plain_state)
    return ListParameters(
        query=query,
        environment=fields.get("environment", ""),
        state=state if state in STATES else "",
        time_range=read_page_range(fields, now_ms),
        sort=sort if sort in SORTS else PLAIN_SORT,  # type: ignore[arg-type]
        cursor=fields.get("cursor") or None,
        plain_state=plain_state,
    )
