"""Names of functions and files without the additions of engines, compilers, obfuscators and builders."""

import pytest

from grouping.fingerprint import built_files, javascript, jvm, native, scripts
from grouping.fingerprint.event_view import GroupingFrame
from grouping.fingerprint.frames import Family, FrameRole
from grouping.fingerprint.made_names import source_name
from grouping.fingerprint.sites import to_site


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("pay", "pay"),
        ("Object.pay", "pay"),
        ("Cart.total", "total"),
        ("_Cart.total", "total"),
        ("async pay", "pay"),
        ("async*pay", "pay"),
        ("new Cart", "Cart"),
        ("get badge [as badge]", "badge"),
        ("Card.get badge [as badge]", "badge"),
        ("pay2", "pay"),
        ("<anonymous>", ""),
        ("Object.<anonymous>", ""),
        ("anonymous", ""),
        ("value", ""),
        ("pay/<", ""),
        ("connect/sock.onmessage", ""),
        ("b.who.map", ""),
        ("items.map", ""),
        ("global code", ""),
        ("", ""),
    ],
)
def test_javascript_functions_lose_additions_of_engines_and_builders(sent: str, name: str) -> None:
    assert javascript.function_name(source_name(sent, Family.JAVASCRIPT, "")) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("src/cart.js", "cart.js"),
        ("https://cdn3.example.com/static/js/main.62cd0ab1.js", "main.js"),
        ("http://localhost:8080/file.js?v=729825199", "file.js"),
        ("/assets/index-BxK2s9aQ.js", "index.js"),
        ("/assets/index-DiwrgTda.js", "index.js"),
        ("/assets/Checkout-C-_x1y2Z.js", "Checkout.js"),
        ("/assets/Checkout--x_1y2ZB.mjs", "Checkout.mjs"),
        ("/assets/user-list-B_n9a-Zx.js", "user-list.js"),
        ("src/checkout-step_two.js", "checkout-step_two.js"),
        ("src/plan-UI-Parts.js", "plan-UI-Parts.js"),
        ("src/plan-to-Item2.tsx", "plan-to-Item2.tsx"),
        ("42.4f8a91c2.chunk.js", ".chunk.js"),
        ("cd351f7250857e22ceaa.worker.js", ".worker.js"),
        ("bundle-613EDD44F3305B9D75D4679663900F2BCDDDC326F247CA3202A3A4219FD412D3", "bundle"),
        ("src/Checkout.tsx", "Checkout.tsx"),
        ("src/user-Settings.tsx", "user-Settings.tsx"),
        ("main.jsbundle", "bundle"),
        ("index.android.bundle", "bundle"),
        ("node_modules/lodash/lodash.js", "lodash/lodash.js"),
        ("../node_modules/@scope/part/es/index.js", "@scope/part/index.js"),
        ("https://example.com/", ""),
        ("https://example.com/orders/1234", "orders/*"),
        ("https://example.com/orders/5f0c1f9e-33d4-4b8a-9d55-0f6f5f1c2a11?tab=2", "orders/*"),
        ("https://example.com/orders/665f1c2a11d04b8a9d55aa01#top", "orders/*"),
        ("https://example.com/1234", "*"),
        ("https://example.com/users/me", "me"),
        ("https://example.com/decade", "decade"),
        ("blob:https://example.com/5f0c1f9e-33d4-4b8a-9d55-0f6f5f1c2a11", "*"),
        (r"C:\app\src\pay.ts", "pay.ts"),
        ("address-book.js", "address-book.js"),
        ("jquery-3.7.1.min.js", "jquery-3.7.1.min.js"),
    ],
)
def test_javascript_files_lose_hosts_hashes_and_ids(path: str, name: str) -> None:
    assert built_files.script_name(path) == name


@pytest.mark.parametrize(
    ("path", "line", "column", "minified"),
    [
        ("src/cart.js", 27, 90, False),
        ("src/cart.js", 900, 90, False),
        ("main.js", 1, 15000, True),
        ("main.js", 20, 1500, True),
        ("main.62cd0ab1.js", 1, 12, True),
        ("main.jsbundle", 20, 85, True),
        ("http://10.0.2.2:8081/index.bundle?platform=ios&dev=true", 90000, 12, False),
        ("jquery.min.js", 2, 5, True),
        ("src/Checkout.tsx", 3, 20, False),
        ("src/use-Checkout.tsx", 3, 20, False),
        ("https://example.com/orders/5f0c1f9e-33d4-4b8a-9d55-0f6f5f1c2a11", 40, 20, False),
    ],
)
def test_frames_of_builds_are_recognised(path: str, line: int, column: int, minified: bool) -> None:
    assert built_files.is_minified(GroupingFrame(None, path, line, column)) is minified


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("com.example.Cart.total", "com.example.Cart.total"),
        ("com.example.Cart$1.run", "com.example.Cart.run"),
        ("com.example.Cart$Line.total", "com.example.Cart$Line.total"),
        ("com.example.Cart.lambda$total$3", "com.example.Cart.total"),
        ("com.example.Cart$$Lambda$14/0x0000000800c8.run", "com.example.Cart.run"),
        ("com.example.Cart$$ExternalSyntheticLambda0.onClick", "com.example.Cart.onClick"),
        ("com.example.Cart$$EnhancerBySpringCGLIB$$1a2b3c.total", "com.example.Cart.total"),
        ("com.example.net.a.b", "com.example.net.*.*"),
        ("com.example.net.db.run", "com.example.net.*.run"),
        ("com.example.net.abk.xyz", "com.example.net.*.*"),
        ("com.example.net.abk.get", "com.example.net.*.get"),
        ("com.example.net.Store$a.b", "com.example.net.Store$*.*"),
        ("com.example.Url.get", "com.example.Url.get"),
        ("a.b", "*.*"),
        ("main", "main"),
        ("", ""),
        ("com.example.io.Reader.open", "com.example.io.Reader.open"),
        ("com.sun.proxy.$Proxy12.total", "com.sun.proxy.total"),
        ("Shop.Cart..ctor", "Shop.Cart.ctor"),
        ("Shop.Cart..cctor", "Shop.Cart.cctor"),
        ("Shop.Cart.Total[T] (System.Int32 id)", "Shop.Cart.Total"),
        ("Shop.Cart.Total[System.String](System.Int32 id)", "Shop.Cart.Total"),
    ],
)
def test_jvm_functions_lose_additions_of_compilers_and_obfuscators(sent: str, name: str) -> None:
    assert jvm.function_name(source_name(sent, Family.JVM, "")) == name


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("Shop.Cart.Total", "Shop.Cart.Total"),
        ("Shop.Cart.<LoadAsync>d__12.MoveNext", "Shop.Cart.LoadAsync"),
        ("Shop.Cart+<LoadAsync>d__12`1.MoveNext()", "Shop.Cart.LoadAsync"),
        ("Shop.Cart.<>c__DisplayClass3_0.<Find>b__1", "Shop.Cart.Find"),
        ("Shop.Cart+<>c.<Find>b__7_0", "Shop.Cart.Find"),
        ("Shop.Cart.<Find>b__7_0", "Shop.Cart.Find"),
        ("Shop.Cart.<>c__DisplayClass3_0.<<Find>b__1>d.MoveNext", "Shop.Cart.Find"),
        ("Shop.Cart.<Find>g__Best|7_0", "Shop.Cart.Find.Best"),
        ("Shop.Cart.<<Find>g__Best|7_0>d.MoveNext", "Shop.Cart.Find.Best"),
        ("Shop.Cart.<.ctor>b__0_1", "Shop.Cart.ctor"),
        ("Shop.Reader.MoveNext", "Shop.Reader.MoveNext"),
        ("com.example.Cart.<init>", "com.example.Cart.<init>"),
    ],
)
def test_functions_that_the_compiler_of_dotnet_makes_of_a_method_are_the_method(sent: str, name: str) -> None:
    assert source_name(sent, Family.JVM, "") == name


@pytest.mark.parametrize(
    "function",
    [
        "jdk.internal.reflect.GeneratedMethodAccessor25.invoke",
        "com.example.Cart.access$300",
        "com.example.Cart.-$$Nest$mtotal",
        "jdk.proxy2.$Proxy31.total",
        "org.junit.Assert.assertEquals",
        "com.google.common.truth.Subject.fail",
    ],
)
def test_jvm_machinery_is_skipped(function: str) -> None:
    assert to_site("android", function, "A.java", True).role is FrameRole.SKIPPED


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("lantern::Exposure::apply<float>(lantern::Frame const&, int)", "lantern::Exposure::apply"),
        ("lantern::Exposure::apply(int) const", "lantern::Exposure::apply"),
        ("void lantern::apply<int>(int)", "lantern::apply"),
        ("apply.cold.1", "apply"),
        ("apply.isra.0.constprop.2", "apply"),
        ("apply$VARIANT$mp", "apply"),
        ("__41-[LensPicker reload]_block_invoke_2", "-[LensPicker reload]"),
        ("-[LensPicker reload:]", "-[LensPicker reload:]"),
        ("closure #1 in closure #2 in FilmRoll.decode(_:)", "FilmRoll.decode"),
        ("@objc ViewController.viewDidLoad()", "ViewController.viewDidLoad"),
        ("protocol witness for Delegate.done(_:) in conformance Planet", "Delegate.done"),
        ("app::serve::h0123456789abcdef", "app::serve"),
        ("crash ../../out/default/../../examples/toy.cc:12", "crash"),
        ("shop::Sum::operator()(int) const", "shop::Sum::operator_call"),
        ("CheckHandle+0x15a519c", "CheckHandle"),
        ("0x193c9c000 + 0xe0c", ""),
        ("(anonymous namespace)::apply(int)", "apply"),
        ("main.(*Server).handle", "main.Server.handle"),
        ("main.(*List[...]).Push", "main.List.Push"),
        ("main.Server.handle", "main.Server.handle"),
        ("main.(*Server).handle-fm", "main.Server.handle"),
        ("main.run.func2", "main.run"),
        ("main.run.func1.2", "main.run"),
        ("main.(*Server).run.func1.gowrap3", "main.Server.run"),
        ("example.com/shop/pay.Charge.deferwrap1", "example.com/shop/pay.Charge"),
        ("main.glob..func1", "main.glob..func1"),
    ],
)
def test_native_functions_lose_parameters_and_additions_of_compilers(sent: str, name: str) -> None:
    assert native.function_name(source_name(sent, Family.NATIVE, "")) == name


@pytest.mark.parametrize(
    "name",
    [
        "abort",
        "__pthread_kill",
        "objc_exception_throw",
        "raise",
        "__asan_memcpy",
        "main",
        "malloc_vreport",
        "std::vector::at",
        "boost::function0::operator_call",
        "operator new",
        "__dynamic_cast",
        "-[UIApplication _run]",
        "v8::base::OS::Abort",
    ],
)
def test_native_machinery_is_no_place(name: str) -> None:
    assert native.is_helper(name)


@pytest.mark.parametrize(
    "name", ["lantern::Exposure::apply", "-[Album depth]", "maintain", "starter", "killSwitch"]
)
def test_names_of_an_app_are_places(name: str) -> None:
    assert not native.is_helper(name)


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("Cart.total", "Cart.total"),
        ("outer.inner", "outer.inner"),
        ("Cart.total.<listcomp>.<lambda>", "Cart.total"),
        ("Cart.total.<locals>.<listcomp>", "Cart.total"),
        ("Cart.total.<locals>.<listcomp>.<locals>.<lambda>", "Cart.total"),
        ("total.<locals>.inner", "total.<locals>.inner"),
        ("<lambda>.<locals>.<genexpr>", ""),
        ("<genexpr>", ""),
        ("<module>", ""),
        ("<lambda>", ""),
        ("block in run", "run"),
        ("block (2 levels) in run", "run"),
        ("_CartState.build.<anonymous closure>", "_CartState.build"),
    ],
)
def test_functions_of_other_languages_have_their_names_in_the_source(sent: str, name: str) -> None:
    assert scripts.function_name(sent) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("shop/pay/views.py", "pay/views.py"),
        ("views.py", "views.py"),
        ("/srv/app/lib/cart.rb", "lib/cart.rb"),
        (r"C:\shop\pay.php", "shop/pay.php"),
    ],
)
def test_files_of_other_languages_keep_their_folder(path: str, name: str) -> None:
    assert built_files.file_with_folder(path) == name


@pytest.mark.parametrize(
    "path",
    ["venv/lib/python3.11/site-packages/wire/io.py", "vendor/laravel/Route.php", "/x/gems/rack/rack.rb"],
)
def test_installed_packages_are_libraries(path: str) -> None:
    assert scripts.is_library(path)
