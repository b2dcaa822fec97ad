"""Which frames decide, where the pinned fingerprints don't show it."""

from typing import Any

import pytest

from grouping.fingerprint import culprit
from tests.unit.grouping.fingerprint.events import decode, event, frame, grouped
from tests.unit.grouping.fingerprint.test_precedence import msg

APP = frame("com.shop.Cart.total", "Cart.java")
PLATFORM = frame("android.os.Handler.dispatch", "Handler.java", in_app=False)


@pytest.mark.parametrize(("between", "named"), [(8, True), (9, False)])
def test_names_below_the_ten_frames_of_v8_are_not_looked_at(between: int, named: bool) -> None:
    library = frame("each", "node_modules/lodash/lodash.js", in_app=False)
    stack = [frame(None, "src/cart.js"), *[library] * between, frame("total", "src/cart.js")]
    assert ("frame total in cart.js" in grouped(event("TypeError", "x 1", stack)).parts) is named


@pytest.mark.parametrize(
    ("stack", "site"),
    [
        ([PLATFORM, APP], "com.shop.Cart.total"),
        ([], ""),
        ([frame("", "Main.java")], "<anonymous> in Main.java"),
    ],
)
def test_the_culprit_is_the_site_for_people(stack: list[dict[str, Any]], site: str) -> None:
    assert culprit(decode(msg(event("E", "m", stack, "android")))) == site
