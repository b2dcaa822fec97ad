"""Parts that are read as the source has them: names, folders, helpers, browsers' errors, and values that tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.grouping_pairs import read_pairs, wrong_pairs
from grouping.fingerprint import faults, fingerprint, mangling
from grouping.fingerprint.built_files import with_folder
from grouping.fingerprint.frames import Family
from grouping.fingerprint.helpers import is_helper
from grouping.fingerprint.made_names import source_name
from grouping.fingerprint.mangling import demangled
from grouping.fingerprint.sites import to_site

SYMBOL = st.text(st.sampled_from("_ZNRsSIEKLCDT0123456789$aAbBetyVF²٣ \ud800"), max_size=60)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN4shop4Cart5totalEv", "shop::Cart::total"),
        ("_ZNK4shop5StoreIiNS_4ItemEE3getEm", "shop::Store::get"),
        ("_Z5parsePKc", "parse"),
        ("_ZN4shop4CartC2Ev", "shop::Cart::Cart"),
        ("_ZN4shop4CartD0Ev", "shop::Cart::~Cart"),
        ("_ZN12_GLOBAL__N_15totalEv", "total"),
        ("_ZZN4shop4Cart5totalEvENKUlvE_clEv", "shop::Cart::total"),
        ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back"),
        ("_ZN4shop4cart5total17h0123456789abcdefE", "shop::cart::total"),
        (
            "_ZN49_$LT$shop..Cart$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
            "<shop::Cart as core::fmt::Display>::fmt",
        ),
        ("_RNvNtCs1234_4shop4cart5total", "shop::cart::total"),
        ("_RNvC4shop6_1total", "shop::1total"),
        ("$s4Shop4CartC5totalSdyF", "Shop.Cart.total"),
        ("$s4Shop0A4CartC5totalSdyF", "Shop.ShopCart.total"),
        ("$s4Shop4CartC3add4itemyAA4ItemV_tF", "Shop.Cart.add"),
        *[
            (name, name)
            for name in ("", "main", "_start", "__libc_start_main", "-[Cart total]", "_Z", "$s", "_R")
        ],
    ],
)
def test_names_in_mangled_symbols(symbol: str, name: str) -> None:
    assert demangled(symbol) == name


@given(st.sampled_from(["_ZN", "_Z", "_R", "$s", "_T0", ""]), SYMBOL)
def test_no_symbol_is_an_error(start: str, rest: str) -> None:
    name = demangled(start + rest)
    assert "\ud800" in rest or "\ud800" not in name


@pytest.mark.parametrize(
    ("function", "family", "file", "name"),
    [
        ("_callee3$", Family.JAVASCRIPT, "a.js", ""),
        ("my_callee", Family.JAVASCRIPT, "a.js", "my_callee"),
        ("?anon_0_load", Family.JAVASCRIPT, "a.js", "load"),
        ("Form._this.handleClick", Family.JAVASCRIPT, "a.js", "handleClick"),
        ("thisIsFine", Family.JAVASCRIPT, "a.js", "thisIsFine"),
        ("async load", Family.JAVASCRIPT, "a.js", "load"),
        ("async*load", Family.JAVASCRIPT, "a.js", "load"),
        ("setTimeout handler*load", Family.JAVASCRIPT, "a.js", "load"),
        ("Cart.get total [as total]", Family.JAVASCRIPT, "a.js", "Cart.total [as total]"),
        ("Anonymous function", Family.JAVASCRIPT, "a.js", ""),
        ("global code", Family.JAVASCRIPT, "a.js", ""),
        ("Line 42 of linked script ", Family.JAVASCRIPT, "a.js", ""),
        ("a.Model$load$1.invokeSuspend", Family.JVM, "Model.kt", "a.Model.load"),
        ("a.Model$load$1$2.invoke", Family.JVM, "Model.kt", "a.Model.load"),
        ("a.Model.load$lambda$0", Family.JVM, "Model.kt", "a.Model.load"),
        ("a.Model.load$default", Family.JVM, "Model.kt", "a.Model.load"),
        ("a.Cart$_total_closure1.doCall", Family.JVM, "Cart.groovy", "a.Cart.total"),
        ("a.Cart$Line.invoke", Family.JVM, "Cart.java", "a.Cart$Line.invoke"),
        ("Shop.Store`1[System.String].Get", Family.JVM, "Store.cs", "Shop.Store.Get"),
        ("main.Map[go.shape.int]", Family.NATIVE, "map.go", "main.Map"),
        ("-[Cart lines[]]", Family.NATIVE, "", "-[Cart lines[]]"),
        ("<a::Cart as core::fmt::Display>::fmt", Family.NATIVE, "", "a::Cart::fmt"),
        ("a::total()::{lambda(int)#1}::operator()(int) const", Family.NATIVE, "", "a::total()"),
        ("closure #1 (Swift.Int) -> () in Shop.Cart.add() -> ()", Family.NATIVE, "", "Shop.Cart.add()"),
        ("partial apply for closure #2 () in Shop.Cart.add()", Family.NATIVE, "", "Shop.Cart.add()"),
        ("outlined copy of Shop.Cart", Family.NATIVE, "", "Shop.Cart"),
        ("shop::<impl Sum for Cart>::of", Family.NATIVE, "", "shop::<impl Sum for Cart>::of"),
        ("void shop::total<int>(int)", Family.NATIVE, "", "void shop::total<int>(int)"),
        (
            "Shop.Cart.add(item: Shop.Item) throws -> Swift.Int",
            Family.NATIVE,
            "",
            "Shop.Cart.add(item: Shop.Item)",
        ),
        ("Shop::Cart#total", Family.OTHER, "cart.rb", "total"),
        ("block in Shop::Cart.total", Family.OTHER, "cart.rb", "total"),
        ("{closure:App\\Cart::total():12}", Family.OTHER, "Cart.php", ""),
        ("_CartState.build.<fn>", Family.OTHER, "cart.dart", "_CartState.build"),
        ("Cart.total", Family.OTHER, "cart.py", "Cart.total"),
    ],
)
def test_names_that_tools_made_are_those_of_the_source(
    function: str, family: Family, file: str, name: str
) -> None:
    assert source_name(function, family, file) == name


@given(
    st.text(max_size=80), st.sampled_from(Family), st.sampled_from(["a.rb", "a.php", "a.dart", "a.js", ""])
)
def test_a_name_is_not_an_error_and_not_longer(function: str, family: Family, file: str) -> None:
    assert len(source_name(function, family, file)) <= len(function) + 2


def test_evaluated_code_belongs_to_its_evaluator() -> None:
    by_line = to_site("javascript", "total", "src/tpl.js line 10 > eval", in_app=True)
    assert by_line == to_site("javascript", "total", "src/tpl.js", in_app=True)
    assert to_site("javascript", "total", "src/a > b.js", in_app=True).module == "a > b.js"
    nested = "eval at a (eval at render (src/view.js:10:5), <anonymous>:1:1), <anonymous>"
    assert to_site("javascript", "eval", nested, in_app=True).text == "render in view.js"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("src/app/api/orders/route.ts", "orders/route.ts"),
        ("C:\\shop\\orders\\route.ts", "orders/route.ts"),
        ("webpack://shop/./src/orders/route.ts?a=1", "orders/route.ts"),
        ("src/app/users/[id]/route.ts", "users/route.ts"),
        ("app/(admin)/route.ts", "(admin)/route.ts"),
        ("packages/cart/src/route.ts", "cart/route.ts"),
        ("/home/ci/build/4711/src/route.ts", "route.ts"),
        ("/srv/releases/20260101/dist/route.ts", "route.ts"),
        ("route.ts", "route.ts"),
        ("", "route.ts"),
    ],
)
def test_a_file_has_the_folder_that_says_something(path: str, found: str) -> None:
    assert with_folder(path, "route.ts") == found


@pytest.mark.parametrize(
    "name",
    [
        "invariant",
        "assertNever",
        "createError",
        "Api.execute",
        "a::check",
        "checkElementIndex",
        "raise_error",
    ],
)
def test_helpers_check_raise_or_pass_on(name: str) -> None:
    assert is_helper(name)


@pytest.mark.parametrize("name", ["", "total", "saveOrder", "Orders.load", "checkout", "*", "Text", "null"])
def test_functions_with_other_names_are_no_helpers(name: str) -> None:
    assert not is_helper(name)


@pytest.mark.parametrize(
    ("kind", "message", "key"),
    [
        (
            "NotFoundError",
            "Failed to execute 'removeChild' on 'Node': The node is not a child.",
            "dom",
        ),
        ("NotFoundError", "The object can not be found here.", "dom"),
        ("SyntaxError", "Failed to execute 'matches' on 'Element': '[' is not a valid selector.", "dom"),
        ("AbortError", "The play() request was interrupted by a call to pause().", "aborted"),
        ("Error", "Node.removeChild: The node is not a child", None),
        ("SyntaxError", "JSON.parse: unexpected character at line 1 column 1 of the JSON data", "bad JSON"),
        ("TypeError", "Cannot redefine property: rate", "redefined"),
        ("TypeError", "Cannot read properties of undefined (reading 'id')", "null.id"),
        ("TypeError", 'Unable to fetch the property "id": the value is null', "null.id"),
        ("TypeError", "Cannot read property '0' of null", "null.[]"),
        ("Error", "The property 'id' of the order is null", None),
        ("TypeError", "Cannot delete property 'null' of #<Object>", "read-only"),
        ("Error", "Order has no lines", None),
    ],
)
def test_one_key_for_an_error_of_all_browsers(kind: str, message: str, key: str | None) -> None:
    assert faults.fault(kind, message) == key


@pytest.mark.parametrize(
    ("known", "weak"),
    [
        ("null.length", True),
        ("call.split", True),
        ("null.price", False),
        ("undeclared.map", False),
        ("null.[]", True),
    ],
)
def test_common_engine_errors_are_weak_in_a_build(known: str, weak: bool) -> None:
    assert faults.is_weak_in_build(known) is weak


def test_documented_pairs_are_joined_or_apart_but_for_those_that_no_single_event_shows() -> None:
    wrong = [pair.about for pair in wrong_pairs(read_pairs(), lambda event: fingerprint(event).hash)]
    assert sorted(wrong) == [
        "a common property, two methods that kept their names",
        "a common property, two methods that kept their names",
        # Only V8 shows the class.
        "two classes with a method of one name in one file",
    ]


@pytest.mark.parametrize(
    "symbol",
    ["_ZN" + "0a" * 200, "_ZN" + "1a" * 200, "_ZN1aI" + "1a" * 200, "_RN" + "1a" * 200, "$s" + "1aC" * 130],
)
def test_so_many_names_of_a_symbol_are_read_and_no_more(symbol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    name = mangling._name

    def counted(text: str, position: int) -> tuple[str, int]:
        read.append(position)
        return name(text, position)

    monkeypatch.setattr(mangling, "_name", counted)
    assert mangling.demangled(symbol)
    assert len(read) <= 40
