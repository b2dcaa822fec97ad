import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from dashboard.view.text import BLOCK, LINES, block, code_spans, count, inline, marked, users, where


def test_direction_marks_are_shown_by_their_code_point() -> None:
    assert marked("a\u202eb") == Markup(
        'a<span class="glyph" title="U+202E right-to-left override">U+202E</span>b'
    )


def test_markup_is_text() -> None:
    assert inline("<b>&") == Markup("<bdi>&lt;b&gt;&amp;</bdi>")


def test_long_texts_are_cut_with_a_mark() -> None:
    html = inline("x" * 1000, 10)
    assert "x" * 10 + "</bdi>" in html
    assert "x" * 11 not in html
    assert "1,000 characters" in html


def test_long_blocks_can_be_unfolded() -> None:
    html = block("x" * (BLOCK + 1))
    assert "Show all 2,001 characters" in html
    assert "x" * (BLOCK + 1) in html
    assert "The rest is in the JSON" not in html


def test_blocks_of_many_lines_are_folded_too() -> None:
    whole = "\n".join(f"line {number}" for number in range(LINES))
    assert "Show all" not in block(whole)
    html = str(block(f"{whole}\none more"))
    folded, _, unfolded = html.partition("<details")
    assert f"line {LINES - 1}</bdi>" in folded
    assert "one more" not in folded
    assert "one more" in unfolded


def test_endless_blocks_end() -> None:
    html = block("x" * 1_000_000)
    assert len(html) < 110_000
    assert "The rest is in the JSON" in html


@given(st.text())
def test_nothing_that_is_shown_turns_the_direction_or_breaks_out(text: str) -> None:
    html = str(inline(text, 10_000))
    inner = html.removeprefix("<bdi>").removesuffix("</bdi>")
    assert not any(
        unicodedata.bidirectional(c) in {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}
        for c in html
    )
    left = Markup(inner).striptags()
    assert "<" not in inner.replace('<span class="glyph"', "").replace("</span>", "")
    assert isinstance(left, str)


def test_counts_are_short_with_the_exact_one_at_hand() -> None:
    assert str(count(9_999)) == "9,999"
    assert str(count(12_345)) == '<span title="12,345">12.3k</span>'
    assert str(count(2_000_000)) == '<span title="2,000,000">2M</span>'
    assert str(count(123_456_789)) == '<span title="123,456,789">123M</span>'


def test_code_without_a_name_is_where_its_file_is() -> None:
    assert where("<anonymous> in hello.py") == "hello.py"
    assert where("main in hello.py") == "main in hello.py"


def test_names_of_a_sentence_are_code() -> None:
    assert code_spans("`<b>` decided") == Markup(
        "<bdi></bdi><code><bdi>&lt;b&gt;</bdi></code><bdi> decided</bdi>"
    )


def test_only_large_numbers_of_users_are_estimates() -> None:
    assert [users(number) for number in (1, 100, 4170)] == ["1 user", "100 users", "about 4,170 users"]
