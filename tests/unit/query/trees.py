"""Strategies: trees in normal form over a small alphabet, so that they meet the events that `views` draws."""

from hypothesis import strategies as st

from query.event_view import EventView, IssueView
from query.patterns import normal
from query.tree import (
    COMPARABLE,
    COUNTS,
    FIELDS,
    ISSUE_FIELDS,
    STATES,
    And,
    Compare,
    Filter,
    Has,
    Is,
    Not,
    Or,
    Pattern,
    Query,
    Text,
)
from schemas.issues import ESCALATING_MS, NEW_MS

NOW_MS = 1_790_000_000_000
SPREAD_MS = 20_000
"""Times lie this close around NOW_MS, so that comparisons are often close calls."""

WORDS = [
    *("", "a", "A", "b", "ab", "aB", "a b", "a_b", "axb", "a%b", "a*b", "a=b", "b=", "=", "_", "%", "*", "x"),
    *(
        "\\",
        "a\\b",
        "a\\*b",
        '"',
        "'",
        "it's",
        "]",
        "a,b",
        "\n",
        "a\nb",
        "\t",
        "\0",
        "-a",
        "{p0:String}",
        "?",
        "a.b",
        "[ab]",
    ),
    *("é", "É", "aé", "ß", "ẞ", "Σ", "σ", "ς", "Ж", "жa", "İ", "i", "I", "ı"),
    *("K", "k", "😀", "null", "\\N"),
]
"""Words that are special in either language, and near misses of each.

They are wildcards of both languages, quotes, escapes, and cased letters with odd rules."""

short = st.sampled_from(WORDS)
keys = st.sampled_from(["a", "b", "os", "a=b", "is", "it's", "x y", "", 'q"]', "\\", "*"])


patterns = st.lists(short, min_size=1, max_size=3).map(lambda found: Pattern(normal(found)))


def _text(pattern: Pattern) -> Text:
    parts = list(pattern.parts)
    if len(parts) > 1:
        parts = parts[not parts[0] : len(parts) - (not parts[-1])]
    return Text(Pattern(normal(parts or [""])))


def _distinct(values: list[Pattern]) -> tuple[Pattern, ...]:
    return tuple(dict.fromkeys(values))


values = st.lists(patterns, min_size=1, max_size=3).map(_distinct)
tag_filters = st.builds(Filter, key=keys, is_tag=st.just(True), values=values)
field_filters = st.builds(
    Filter, key=st.sampled_from([*FIELDS, *ISSUE_FIELDS]), is_tag=st.just(False), values=values
)
has = st.builds(Has, key=keys, is_tag=st.just(True)) | st.builds(
    Has, key=st.sampled_from([*FIELDS, *ISSUE_FIELDS]), is_tag=st.just(False)
)
states = st.builds(Is, st.lists(st.sampled_from(STATES), min_size=1, max_size=3, unique=True).map(tuple))
near = st.integers(NOW_MS - SPREAD_MS, NOW_MS + SPREAD_MS)
long_ago = near | near.map(lambda ms: ms - NEW_MS) | near.map(lambda ms: ms - ESCALATING_MS) | st.just(0)
orders = st.sampled_from([">", ">=", "<", "<="])
times = st.sampled_from([key for key in COMPARABLE if key not in COUNTS])
comparisons = (
    st.builds(Compare, key=times, op=orders, value=near)
    | st.builds(
        Compare, key=times, op=orders, value=st.integers(0, 20).map(lambda s: s * 1000), ago=st.just(True)
    )
    | st.builds(
        Compare,
        key=st.sampled_from(COUNTS),
        op=st.sampled_from(["=", ">", ">=", "<", "<="]),
        value=st.integers(0, 5),
    )
)
leaves = patterns.map(_text) | tag_filters | field_filters | has | states | comparisons


def _join(kind: type[And] | type[Or], items: list[Query]) -> Query:
    flat: list[Query] = []
    for item in items:
        flat.extend(item.items if isinstance(item, kind) else [item])
    return kind(tuple(flat))


queries: st.SearchStrategy[Query] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(_join, st.sampled_from([And, Or]), st.lists(inner, min_size=2, max_size=3))
        | st.builds(Not, inner)
    ),
    max_leaves=8,
)

issues = st.builds(
    IssueView,
    status=st.sampled_from(["open", "resolved", "ignored"]),
    regressed=st.booleans(),
    assignee=short,
    first_release=short,
    first_seen=long_ago,
    last_seen=near,
    events=st.integers(0, 5),
    users=st.integers(0, 5),
    escalated=long_ago,
)
tags = st.dictionaries(keys, short, max_size=4)
places = st.lists(short, max_size=3, unique=True).map(tuple)
views = st.builds(
    EventView,
    type=short,
    message=st.lists(short, max_size=3).map("".join),
    tags=tags,
    environment=short,
    release=short,
    platform=short,
    os=short,
    os_version=short,
    model=short,
    locale=short,
    sdk=short,
    user=short,
    files=places,
    functions=places,
    timestamp=near,
    issue=st.none() | issues,
)
