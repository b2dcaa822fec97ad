import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from query.parse import MAX_DEPTH, MAX_LENGTH, MAX_TERMS, MAX_WILDCARDS, parse
from query.print import to_text
from query.tree import EVERYTHING, And, Compare, Filter, Has, Is, Not, Or, Pattern, Query, Text
from schemas.errors import QueryError
from tests.unit.query.trees import queries


def text(*parts: str) -> Text:
    return Text(Pattern(parts))


def field(key: str, *values: str) -> Filter:
    return Filter(key, False, tuple(Pattern(tuple(value.split("*"))) for value in values))


def tag(key: str, *values: str) -> Filter:
    return Filter(key, True, tuple(Pattern(tuple(value.split("*"))) for value in values))


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("", EVERYTHING),
        (" \n", EVERYTHING),
        ("timeout", text("timeout")),
        ('"read timed out"', text("read timed out")),
        ("a b", And((text("a"), text("b")))),
        ("a AND b", And((text("a"), text("b")))),
        ("a OR b c", Or((text("a"), And((text("b"), text("c")))))),
        ("(a OR b) c", And((Or((text("a"), text("b"))), text("c")))),
        ("((a b) c)", And((text("a"), text("b"), text("c")))),
        ("ANDROID ORacle", And((text("ANDROID"), text("ORacle")))),
        ("co*on", text("co", "on")),
        ("*edge*", text("edge")),
        ("*", text("")),
        ("well-known", text("well-known")),
        ("items[0],", text("items[0],")),
        ("a\u3000b\u00a0\u2003OR\u3000c\u00a0", Or((And((text("a"), text("b"))), text("c")))),
        ("\u00a0os:[ios,\u3000android]", field("os", "ios", "android")),
        ("Resque::DirtyExit", text("Resque::DirtyExit")),
        ("std::vector<int>::at*", text("std::vector<int>::at")),
        ("has::x", text("has::x")),
        ("http://a.example:80/b?c=[1]", text("http://a.example:80/b?c=[1]")),
        ("-a::b OR (c::d e)", Or((Not(text("a::b")), And((text("c::d"), text("e")))))),
        ("type:a::b", field("type", "a::b")),
        ('url:"//cdn/x"', tag("url", "//cdn/x")),
        ("tags[a]::b", tag("a", ":b")),
        ("-a", Not(text("a"))),
        ("--a", Not(Not(text("a")))),
        ("-(a OR b)", Not(Or((text("a"), text("b"))))),
        ("environment:prod", field("environment", "prod")),
        ("feature:checkout", tag("feature", "checkout")),
        ("tags[os]:web", tag("os", "web")),
        ('tags["two words"]:x', tag("two words", "x")),
        ("os:[ios, android]", field("os", "ios", "android")),
        ('release:"app@1.2.0+7"', field("release", "app@1.2.0+7")),
        ("release:app@1.*", field("release", "app@1.*")),
        ("release:@scope/app@1.0.0+7", field("release", "@scope/app@1.0.0+7")),
        ("release:@scope/app@1.*", field("release", "@scope/app@1.*")),
        ('file:["a, b", c*]', field("file", "a, b", "c*")),
        ("url:https://example.com/a,b", tag("url", "https://example.com/a,b")),
        (r"x:a\*b", Filter("x", True, (Pattern(("a*b",)),))),
        (r'x:"say \"hi\" \\ C:\dir"', Filter("x", True, (Pattern((r'say "hi" \ C:\dir',)),))),
        ("is:open", Is(("open",))),
        ("is:[open, regressed, open]", Is(("open", "regressed"))),
        ("has:user", Has("user", False)),
        ("has:feature", Has("feature", True)),
        ("has:tags[user]", Has("user", True)),
        ('has:"two words"', Has("two words", True)),
        ("events:>100", Compare("events", ">", 100)),
        ("events:> 100", Compare("events", ">", 100)),
        ("users:3", Compare("users", "=", 3)),
        ("timestamp:>=2026-01-31", Compare("timestamp", ">=", 1_769_817_600_000)),
        ("lastSeen:<2026-01-31T00:00:00.5Z", Compare("lastSeen", "<", 1_769_817_600_500)),
        ("lastSeen:<2026-01-31T02:00+02:00", Compare("lastSeen", "<", 1_769_817_600_000)),
        ("firstSeen:>-36h", Compare("firstSeen", ">", 129_600_000, True)),
    ],
)
def test_text_becomes_the_tree_that_it_says(typed: str, tree: Query) -> None:
    assert parse(typed) == tree


@pytest.mark.parametrize(
    ("typed", "position", "expected"),
    [
        ("TypeError: x", 9, "a key before and a value directly after the colon"),
        (":x", 0, "a key before"),
        ("Shop::StockError: x", 16, "a key before and a value directly after the colon"),
        ("std::", 3, "a key before"),
        ("http://", 4, "a key before"),
        ("key:", 3, "a value directly after the colon"),
        ("(a", 2, "a closing parenthesis"),
        ("a)", 1, "more of the query, AND, OR or its end"),
        ("()", 1, "a word"),
        ('a "b', 2, "a closing quotation mark"),
        ("key:[a", 6, "a comma or a closing bracket"),
        ("key:[]", 5, "a value"),
        ("key:[a,]", 7, "a value"),
        ("a OR", 4, "a word"),
        ("OR a", 0, "a word"),
        (" AND a", 1, "a word"),
        ("OR", 0, "a word"),
        ("a AND OR b", 6, "a word"),
        ("a - b", 2, "directly after the minus"),
        ("is:closed", 3, "one of open, resolved, ignored, regressed, assigned, new, ongoing, escalating"),
        ("is:[open, shut]", 10, "one of open"),
        ("has:events", 4, "a field or a tag"),
        ("has:tags[x", 4, "a tag's key in brackets"),
        ("events:>many", 8, "a whole number"),
        ("events:>99999999999999999999", 8, "a whole number"),
        ("lastSeen:>soon", 10, "a time such as"),
        ("lastSeen:>2026-02-30", 10, "a time such as"),
        ("lastSeen:>0001-01-01", 10, "a time such as"),
        ("lastSeen:2026-01-01", 9, "one of >, >=, <, <="),
        ("level:>3", 6, "only firstSeen, lastSeen, timestamp, events, users compare"),
        ("a:" + "*x" * (MAX_WILDCARDS + 1), 2, "wildcards"),
        ("a" * (MAX_LENGTH + 1), MAX_LENGTH, "the end"),
        ("a " * (MAX_TERMS + 1), 0, f"at most {MAX_TERMS} words"),
        (f"x:[{','.join(map(str, range(MAX_TERMS + 1)))}]", 0, f"at most {MAX_TERMS} words"),
        ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), 0, f"at most {MAX_DEPTH}"),
        ("-" * (MAX_DEPTH + 1) + "a", 0, f"at most {MAX_DEPTH}"),
        ("a \ud83d", 2, "half"),
    ],
)
def test_text_that_is_no_query_is_refused_where_it_stops_being_one(
    typed: str, position: int, expected: str
) -> None:
    with pytest.raises(QueryError) as refused:
        parse(typed)
    assert refused.value.position == position
    assert expected in refused.value.expected
    assert str(position) in refused.value.message


@given(queries)
def test_a_printed_tree_parses_to_itself(query: Query) -> None:
    assert parse(to_text(query)) == query


HOSTILE = "a:*-\"()[]\\,<>= \u3000\u00a0\n\0'%_tagshasiORAND\ud800é"


@given(st.text(max_size=60) | st.text(HOSTILE, max_size=80))
@example("tags[" * 2000)
@example("(" * 10_000)
@example("-" * 10_000)
@example('"' * 10_000)
@example("\\" * 10_000)
@example("a:[" + "b," * 4000)
@example('tags["' + '\\"' * 4000)
@example("a OR " * 2000)
@example(")" * 10_000)
@example("a:" * 5000)
@example("x:" + "*" * 9_998)
@pytest.mark.holds("contract 4 language")
def test_any_text_gives_a_tree_or_a_query_error(typed: str) -> None:
    query = outcome(typed)
    if isinstance(query, QueryError):
        assert 0 <= query.position <= len(typed)
        assert query.expected
    elif len(typed) < 1000:
        assert parse(to_text(query)) == query


def outcome(typed: str) -> Query | QueryError:
    try:
        return parse(typed)
    except QueryError as error:
        return error
