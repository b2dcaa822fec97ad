"""Parses text to a tree. Every text gives a tree or a QueryError, never another exception."""

import re
from functools import cache
from importlib import resources
from typing import Final, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError

from query.patterns import normal, read_literal, read_pattern
from query.tree import (
    COMPARABLE,
    EVERYTHING,
    FIELDS,
    ISSUE_FIELDS,
    STATES,
    TIMES,
    And,
    Compare,
    Comparison,
    Filter,
    Has,
    Is,
    IssueState,
    Not,
    Or,
    Pattern,
    Query,
    Text,
    leaves,
)
from query.values import read_count, read_time
from schemas.errors import QueryError

MAX_LENGTH: Final = 10_000
"""Maximum length of a query in code points."""
MAX_TERMS: Final = 200
"""Maximum number of words, phrases and filters of a query; each value of a list counts."""
MAX_DEPTH: Final = 24
"""Maximum nesting of parentheses and minus signs."""
MAX_WILDCARDS: Final = 16
"""Maximum number of wildcards in a word, phrase or value."""

_FIELDS: Final = frozenset((*FIELDS, *ISSUE_FIELDS))
_SURROGATE = re.compile("[\ud800-\udfff]")
_TERM = 'a word, a "phrase" or a filter such as key:value'
_MORE = "more of the query, AND, OR or its end"
_VALUE = "a value"
_WORDS: Final = {
    "WORD": _TERM,
    "QUOTED": _TERM,
    "KEY": _TERM,
    "RPAR": "a closing parenthesis",
    "COMMA": "a comma",
    "RSQB": "a closing bracket",
}
_HINTS: Final = {
    ":": "a key before and a value directly after the colon, or quotation marks around text with a colon",
    "-": "a term directly after the minus, or quotation marks around a minus that is text",
}


class _Term(tuple[Query, int]):
    """A node and the nesting depth of its text."""

    __slots__ = ()


def parse(text: str) -> Query:
    """The tree of a query's text (contract, section 4). Raises QueryError for an invalid query."""
    if len(text) > MAX_LENGTH:
        raise QueryError(MAX_LENGTH, f"the end: a query has at most {MAX_LENGTH} characters")
    if found := _SURROGATE.search(text):
        raise QueryError(found.start(), "a character, not half of one")
    if not text.strip():
        return EVERYTHING
    try:
        query, _ = cast(tuple[Query, int], _parser().parse(text))
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError):
            raise error.orig_exc from None
        raise
    except (UnexpectedToken, UnexpectedCharacters, UnexpectedEOF) as error:
        raise _refusal(text, error) from None
    return query


@cache
def _parser() -> Lark:
    grammar = resources.files("query").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=_Builder(), maybe_placeholders=False)


def _refusal(text: str, error: UnexpectedToken | UnexpectedCharacters | UnexpectedEOF) -> QueryError:
    if isinstance(error, UnexpectedToken):
        position = len(text) if error.token.type == "$END" else int(error.token.start_pos or 0)
        accepted = set(error.accepts or error.expected)
    else:
        position = min(getattr(error, "pos_in_stream", len(text)), len(text))
        accepted = set(getattr(error, "allowed", None) or ())
    found = text[position : position + 1]
    if found == '"' and not isinstance(error, UnexpectedToken):
        return QueryError(position, "a closing quotation mark for the one here")
    if found in _HINTS:
        return QueryError(position, _HINTS[found])
    # The end of the text is also accepted at its beginning, where it is no useful suggestion.
    if "$END" in accepted and text[:position].strip():
        return QueryError(position, _MORE)
    if accepted & {"ITEM", "BARE"}:
        return QueryError(position, _VALUE)
    words = dict.fromkeys(_WORDS[name] for name in sorted(accepted) if name in _WORDS)
    return QueryError(position, " or ".join(words) or _TERM)


class _Builder(Transformer[Token, _Term]):
    """Called by the parser bottom-up, so that nested text causes no nested calls."""

    def start(self, children: list[_Term]) -> _Term:
        query = children[0][0]
        found = _terms(query)
        if found > MAX_TERMS:
            raise QueryError(
                0, f"at most {MAX_TERMS} words, phrases, filters and values of lists, not {found}"
            )
        return children[0]

    def or_(self, children: list[_Term | Token]) -> _Term:
        return _joined(Or, children)

    def and_(self, children: list[_Term | Token]) -> _Term:
        return _joined(And, children)

    def negation(self, children: list[_Term | Token]) -> _Term:
        minus, inner = children
        assert isinstance(minus, Token)
        assert isinstance(inner, _Term)
        return _nested(Not(inner[0]), inner[1] + 1, minus)

    def group(self, children: list[_Term]) -> _Term:
        query, depth = children[0]
        return _nested(query, depth + 1, None)

    def text(self, children: list[Token]) -> _Term:
        parts = list(_pattern(children[0]).parts)
        if len(parts) > 1:
            # A search matches anywhere, so wildcards at the ends are redundant.
            parts = parts[not parts[0] : len(parts) - (not parts[-1])]
        return _Term((Text(Pattern(normal(parts or [""]))), 0))

    def has(self, children: list[Token]) -> _Term:
        token = children[1]
        key, is_tag = _name(token)
        if not is_tag and (key in COMPARABLE or key in {"is", "has"}):
            raise QueryError(_position(token), f"a field or a tag; a tag of this name is tags[{key}]")
        return _Term((Has(key, is_tag or key not in _FIELDS), 0))

    def filter(self, children: list[Token]) -> _Term:
        key, is_tag = _name(children[0])
        values = children[1:]
        if not is_tag and key == "is":
            return _Term((Is(tuple(dict.fromkeys(map(_state, values)))), 0))
        if not is_tag and key in COMPARABLE:
            return _Term((_equal(key, values), 0))
        patterns = tuple(dict.fromkeys(map(_pattern, values)))
        return _Term((Filter(key, is_tag or key not in _FIELDS, patterns), 0))

    def compare(self, children: list[Token]) -> _Term:
        (key, is_tag), op, value = _name(children[0]), children[1], children[2]
        if is_tag or key not in COMPARABLE:
            raise QueryError(
                _position(op),
                f"a value: only {', '.join(COMPARABLE)} compare; quotation marks go around a value that begins so",
            )
        return _Term((_comparison(key, cast(Comparison, str(op)), value), 0))


def _joined(kind: type[And] | type[Or], children: list[_Term | Token]) -> _Term:
    terms = [child for child in children if isinstance(child, _Term)]
    items: list[Query] = []
    for query, _ in terms:
        items.extend(query.items if isinstance(query, kind) else (query,))
    return _Term((kind(tuple(items)), max(depth for _, depth in terms)))


def _nested(query: Query, depth: int, token: Token | None) -> _Term:
    if depth > MAX_DEPTH:
        raise QueryError(
            _position(token), f"at most {MAX_DEPTH} parentheses and minus signs around each other"
        )
    return _Term((query, depth))


def _position(token: Token | None) -> int:
    return int(token.start_pos or 0) if token is not None else 0


def _unquoted(token: Token) -> str:
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _pattern(token: Token) -> Pattern:
    pattern = read_pattern(_unquoted(token))
    if len(pattern.parts) > MAX_WILDCARDS + 1:
        raise QueryError(_position(token), f"at most {MAX_WILDCARDS} wildcards in one place")
    return pattern


def _name(token: Token) -> tuple[str, bool]:
    """The key that a token names, and whether it is explicitly a tag's."""
    if token.type in {"TAG_KEY", "TAG_NAME"}:
        inner = str(token).removesuffix(":")[len("tags[") : -1]
        quoted = inner.startswith('"')
        return (read_literal(inner[1:-1]) if quoted else inner), True
    if token.type == "QUOTED":
        return read_literal(_unquoted(token)), True
    if token.startswith("tags["):
        raise QueryError(_position(token), "a tag's key in brackets, such as tags[key]")
    return str(token).removesuffix(":"), False


def _state(token: Token) -> IssueState:
    state = _unquoted(token)
    if state not in STATES:
        raise QueryError(_position(token), f"one of {', '.join(STATES)}")
    return cast(IssueState, state)


def _equal(key: str, values: list[Token]) -> Query:
    if key in TIMES:
        raise QueryError(_position(values[0]), "one of >, >=, <, <= before the time")
    items = tuple(dict.fromkeys(_comparison(key, "=", value) for value in values))
    return items[0] if len(items) == 1 else Or(items)


def _comparison(key: str, op: Comparison, token: Token) -> Compare:
    text = _unquoted(token)
    if key in TIMES:
        time = read_time(text)
        if time is None:
            raise QueryError(_position(token), "a time such as 2026-01-31, 2026-01-31T08:00:00Z or -24h")
        return Compare(key, op, *time)
    count = read_count(text)
    if count is None:
        raise QueryError(_position(token), "a whole number")
    return Compare(key, op, count)


def _terms(query: Query) -> int:
    """The number of words, phrases and filters in a tree of at most MAX_DEPTH levels; each value of a list counts."""
    return sum(len(leaf.values) if isinstance(leaf, Filter) else 1 for leaf in leaves(query))
