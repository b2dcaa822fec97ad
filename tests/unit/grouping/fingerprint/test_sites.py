"""Which frames decide."""

from typing import Any

import pytest

from grouping.fingerprint import culprit
from tests.unit.grouping.fingerprint.events import decode, event, frame, grouped
from tests.unit.grouping.fingerprint.test_precedence import msg

APP = frame("com.shop.Cart.total", "Cart.java")
LIBRARY = frame("com.squareup.picasso.Picasso.load", "Picasso.java", in_app=False)
PLATFORM = frame("android.os.Handler.dispatch", "Handler.java", in_app=False)


def sites(
    stack: list[dict[str, Any]],
    kind: str = "java.lang.Error",
    platform: str = "android",
    message: str = "x 1",
) -> list[str]:
    """The frame parts of an event with this stack."""
    return [part for part in grouped(event(kind, message, stack, platform)).parts if "frame " in part]


def test_the_topmost_frame_of_the_app_is_the_site() -> None:
    other = frame("com.shop.Main.run", "Main.java")
    assert sites([PLATFORM, LIBRARY, APP, other]) == ["frame com.shop.Cart.total"]


def test_a_known_library_is_no_site_even_when_it_is_marked() -> None:
    assert sites([LIBRARY | {"inApp": True}, APP]) == ["frame com.shop.Cart.total"]


@pytest.mark.parametrize(
    ("stack", "site"),
    [
        ([PLATFORM, LIBRARY], "frame com.squareup.picasso.Picasso.load"),
        ([PLATFORM], "frame android.os.Handler.dispatch"),
        ([frame("abort", "libc", in_app=False)], "frame abort"),
    ],
    ids=["the first library", "the platform", "machinery"],
)
def test_without_the_app_another_frame_decides_with_the_message(
    stack: list[dict[str, Any]], site: str
) -> None:
    found = grouped(event("Broken", "lost 7", stack, "ios" if "abort" in site else "android"))
    assert set(found.parts) == {"type Broken", site, "message lost <*>"}


def test_a_frame_far_below_that_is_not_the_apps_decides_nothing() -> None:
    machinery = [frame("abort", "libc", in_app=False)] * 20
    found = grouped(event("SIGABRT", "", [*machinery, frame("draw", "UIKit", in_app=False)], "ios"))
    assert found.rule == "message"


def test_a_guard_is_grouped_with_its_caller() -> None:
    guard = frame("com.shop.base.Preconditions.checkState", "Preconditions.java")
    assert sites([guard, APP]) == [
        "frame com.shop.base.Preconditions.checkState",
        "frame com.shop.Cart.total",
    ]


def test_a_failed_assertion_is_placed_in_the_test() -> None:
    stack = [
        frame("org.junit.Assert.fail", "Assert.java", in_app=False),
        frame("com.shop.CartTestCase.check", "CartTestCase.java"),
        frame("com.shop.CartTest.testTotal", "CartTest.java"),
        frame(
            "jdk.internal.reflect.NativeMethodAccessorImpl.invoke0",
            "NativeMethodAccessorImpl.java",
            in_app=False,
        ),
    ]
    assert sites(stack, "java.lang.AssertionError") == [
        "frame com.shop.CartTestCase.check",
        "frame com.shop.CartTest.testTotal",
    ]


def test_the_errors_own_constructor_is_skipped() -> None:
    stack = [frame("CartError2", "src/cart.js"), frame("add", "src/cart.js")]
    assert sites(stack, "CartError", "javascript") == ["frame add in cart.js"]


def test_an_anonymous_function_is_identified_by_the_next_name_below() -> None:
    stack = [
        frame(None, "src/cart.js"),
        frame("Array.map", "<anonymous>", in_app=False),
        frame("Cart.total", "src/cart.js"),
    ]
    assert sites(stack, "TypeError", "javascript") == [
        "frame <anonymous> in cart.js",
        "frame total in cart.js",
    ]


@pytest.mark.parametrize(("between", "named"), [(8, True), (9, False)])
def test_names_below_the_ten_frames_of_v8_are_not_looked_at(between: int, named: bool) -> None:
    library = frame("each", "node_modules/lodash/lodash.js", in_app=False)
    stack = [frame(None, "src/cart.js"), *[library] * between, frame("total", "src/cart.js")]
    assert ("frame total in cart.js" in sites(stack, "TypeError", "javascript")) is named


def test_recursion_is_one_frame_however_deep() -> None:
    step = frame("walk", "src/tree.js")
    found = {
        grouped(event("RangeError", "Maximum call stack size exceeded", [step] * depth)).hash
        for depth in (1, 7, 90)
    }
    assert len(found) == 1


def test_the_innermost_cause_that_shows_the_app_decides() -> None:
    outer = frame("com.shop.Main.run", "Main.java")
    cause = {
        "type": "A",
        "message": "",
        "stack": [APP],
        "cause": {"type": "B", "message": "", "stack": [PLATFORM]},
    }
    found = grouped(event("Outer", "x", [outer], "android", cause))
    assert found.parts == (
        "type Outer",
        "frame com.shop.Main.run",
        "cause type A",
        "cause frame com.shop.Cart.total",
    )


def test_in_a_build_the_file_and_the_error_decide() -> None:
    stack = [frame("t", "https://a.example/main.5f3a2b1c.js", 1, 4000)]
    found = grouped(event("TypeError", "Cannot read properties of null (reading 'id')", stack))
    assert found.parts == ("type engine error", "fault null.id", "file main.js")


def test_in_a_build_an_error_without_a_name_takes_the_nearest_name_that_survived() -> None:
    stack = [frame("t", "main.js", 1, 4000), frame("checkout", "main.js", 1, 5000)]
    assert grouped(event("TypeError", "undefined is not a function", stack)).parts[-1] == "near checkout"


def test_an_engines_fault_implies_its_class() -> None:
    stack = [frame("add", "src/cart.js")]
    message = "Cannot read properties of null (reading 'id')"
    kinds = ("TypeError", "unhandled", "CartError")
    assert len({grouped(event(kind, message, stack)).hash for kind in kinds}) == 1
    assert len({grouped(event(kind, "no cart", stack)).hash for kind in kinds}) == 3


def test_an_operation_of_the_browser_has_errors_of_several_classes() -> None:
    stack = [frame("keep", "src/cart.js")]
    message = "Failed to execute 'setItem' on 'Storage': Access is denied."
    kinds = ("SecurityError", "QuotaExceededError")
    assert len({grouped(event(kind, message, stack)).hash for kind in kinds}) == 2


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


def test_without_a_stack_an_engines_error_counts_where_it_names_something() -> None:
    named = [
        "Cannot read properties of undefined (reading 'id')",
        "undefined is not an object (evaluating 'a.id')",
    ]
    assert {grouped(event("TypeError", message)).parts for message in named} == {
        ("type TypeError", "fault null.id")
    }
    assert (
        grouped(event("TypeError", "undefined is not a function")).parts[1]
        == "message undefined is not a function"
    )


def test_a_comprehension_is_where_its_function_is_in_all_versions_of_python() -> None:
    owner = frame("total", "shop/cart.py")
    inlined = sites([owner], "KeyError", "python")
    assert inlined == ["frame total in shop/cart.py"]
    for name in ("<listcomp>", "<dictcomp>", "<setcomp>", "total.<locals>.<listcomp>"):
        assert sites([frame(name, "shop/cart.py"), owner], "KeyError", "python") == inlined


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_methods_of_dotnet_keep_their_place_when_the_compiler_counts_otherwise(platform: str) -> None:
    names = ("Shop.Cart.<Load>d__4.MoveNext", "Shop.Cart.<Load>d__7.MoveNext", "Shop.Cart.Load")
    assert {tuple(sites([frame(name, "Cart.cs")], "E", platform)) for name in names} == {
        ("frame Shop.Cart.Load",)
    }


def test_equal_methods_of_two_types_in_go_are_two_sites() -> None:
    one, other = (sites([frame(f"main.(*{kind}).run", "/src/main.go")]) for kind in ("Server", "Client"))
    assert one == ["frame main.Server.run"]
    assert other == ["frame main.Client.run"]
