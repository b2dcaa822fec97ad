"""Each code point folds alone, independent of its neighbours."""

from hypothesis import given
from hypothesis import strategies as st

from query.case_folding import fold


@given(st.text(st.sampled_from("aAσςΣİıK\u212aÅéÉß日") | st.characters(), max_size=30))
def test_a_text_folds_as_its_code_points_do_one_by_one(text: str) -> None:
    assert fold(text) == "".join(map(fold, text))
    assert len(fold(text)) == len(text)


def test_code_points_fold_to_their_lower_case_but_for_those_that_would_change_their_kind() -> None:
    changed = {c for c in map(chr, range(0x110000)) if fold(c) != c.lower()}
    assert changed == {"İ", "\u212a"}
