"""Names that compilers, containers and interpreters make, and the source names behind them. Pure.

A table for each runtime: each row has the pattern of made names, their names in the source, and their maker.
`source_name` follows the rows in order, `who_made` says which of them applied.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from grouping.fingerprint import javascript
from grouping.fingerprint.built_files import removed
from grouping.fingerprint.frames import Family
from grouping.fingerprint.mangling import demangled, plain_name


class Made(NamedTuple):
    """Names with `hint` in them may be made; `unmade` gives the source's; `words` end a sentence on the rest."""

    hint: str
    unmade: Callable[[str], str]
    words: str


def _without(hint: str, pattern: str, words: str, kept: str = "") -> Made:
    """A row by an expression. A `kept` group that takes no part is empty."""
    expression = re.compile(pattern)
    return Made(hint, lambda name: expression.sub(kept, name), words)


def source_name(function: str, family: Family, file: str) -> str:
    """A function's name as its source has it, before `frames` cleans it; empty for one without a name."""
    if family is Family.OTHER and file.endswith(".rb"):
        function = _of_ruby(function)
    if family is Family.JVM and _PLAIN.fullmatch(function):
        return function
    for hint, unmade, _ in _TABLES[family]:
        if hint in function:
            function = unmade(function)
    return function


def who_made(function: str, family: Family) -> list[str]:
    """A sentence for each row that changes a name: the removed part, and the fact behind it."""
    sentences = []
    for hint, unmade, words in _TABLES[family]:
        if hint in function and (name := unmade(function)) != function:
            sentences.append(f"`{removed(function, name) if hint else function}` {words}")
            function = name
    return sentences


def class_name(kind: str) -> str:
    """An error's class as its source has it: PHP adds NUL, file and line to an anonymous one, C++ reports `typeid`."""
    return _PHP_CLASS.unmade(kind) if _PHP_CLASS.hint in kind else plain_name(kind)


# C#'s `<Load>d__4.MoveNext`, `<Find>b__3_0`, `<Find>g__Best|3_0`; `<<Find>b__1>d.MoveNext` if one is asynchronous.
_CSHARP: Final = re.compile(
    r"[.+](?:<?<(?P<owner>[\w.]+)>(?:b__[\d_]{1,20}|g__(?P<local>\w+)\|[\d_]{1,20})(?:>d(?:__\d{1,10})?)?"
    r"|<(?P<steps>[\w.]+)>d__\d{1,10})(?:`\d{1,3})?(?:[.+]MoveNext(?:\(\))?)?(?=[.+(]|\Z)"
)
# Kotlin's function objects are classes, and methods since 2.0; their methods' names are the language's.
_KOTLIN_OBJECT: Final = frozenset({"invoke", "invokeSuspend", "emit"})
_WORD: Final = re.compile(r"\w+")
_LAMBDA_METHOD: Final = re.compile(r"(?:\$r8\$)?lambda\$(?:(\w+?)\$\w+|[\w$-]+)\Z")
# Engines' words before a name: keywords such as `async`, or the caller with an asterisk.
_BEFORE: Final = re.compile(r"\A[\w ]+\*|(?<![(<])\b[a-z]+ (?=[\w$<])")


def _csharp(function: str) -> str:
    def method(found: re.Match[str]) -> str:
        name = found["owner"] or found["steps"]
        return f".{name}.{found['local']}" if found["local"] else f".{name}"

    return _CSHARP.sub(method, function)


def _kotlin(function: str) -> str:
    """The method whose function object it is: `Cart.total` of `Cart$total$1$2.invoke`."""
    owner, _, method = function.rpartition(".")
    *names, number = owner.split("$")
    if method not in _KOTLIN_OBJECT or not number.isdecimal():
        return function
    first = len(names)
    # No regular expression, which would try each start.
    while first > 1 and _WORD.fullmatch(names[first - 1]):
        first -= 1
    return function if first == len(names) else f"{'$'.join(names[:first])}.{names[first]}"


def _lambda_method(function: str) -> str:
    return _LAMBDA_METHOD.sub(lambda found: found[1] or "lambda", function)


def _of_ruby(function: str) -> str:
    """The method: since Ruby 3.4 its class precedes it (Feature #19117)."""
    return function[max(function.rfind("#"), function.rfind(".")) + 1 :]


def _described(text: str) -> str:
    """A name has no space, so a text with one is an engine's description of a function without a name."""
    name, alias, other = text.partition(" [as ")
    name = "" if javascript.is_nameless(text) else _BEFORE.sub("", name)
    return "" if " " in name else name + alias + other


def _go(function: str) -> str:
    """The function without type arguments; a method of Objective-C is in brackets as a whole."""
    start, end = function.find("["), function.rfind("]") + 1
    named = 1 < start < end and function[end : end + 1] in {"", "."}
    return function[:start] + function[end:] if named else function


_ENGINE: Final = "describes how an engine came there"
_JAVASCRIPT: Final = (
    # babel-plugin-transform-regenerator
    _without("_callee", r"\A_callee\d*\$?\Z", "is a body of an asynchronous function, numbered by Babel"),
    Made(" ", _described, _ENGINE),
    Made("*", _described, _ENGINE),
    _without("?anon_", r"\A\?anon_\d+_", "is made by Hermes"),
    _without(
        ".",
        r"\A(?:[\w$]+\.)?_?(?:this|self)\d*\.(?=[\w$]+\Z)",
        "is a field, compiled into the constructor",
    ),
)
# No made name is written so.
_PLAIN: Final = re.compile(r"[^\W_]++(?:\.[^\W_]++)*+(?:\.<(?:cl)?init>)?")
_JVM: Final = (
    Made("(", lambda name: name.partition("(")[0].rstrip(), "are arguments"),
    # .NET. https://learn.microsoft.com/en-us/ef/ef6/fundamentals/proxies
    _without(
        "<>c",
        r"[.+]<>c(?:__DisplayClass[\d_]{1,20})?(?:`\d{1,3})?(?=[.+])",
        "is a class of lambdas, made by C#",
    ),
    Made(">", _csharp, "is numbered by C#"),
    _without("@", r"@\d+(?:-\d+)?(?=[.+]|\Z)", "is the line of a closure, which F# adds"),
    _without("`", r"`\d{1,3}(?:\[[^\]]*\])?", "counts type arguments"),
    _without("Castle.Proxies.", r"\A(Castle\.Proxies\.\w+?)_\d+(?=\.)", "is numbered by Castle", r"\1"),
    _without(
        "DynamicProxies.",
        r"\ASystem\.Data\.Entity\.DynamicProxies\.(\w+?)_[0-9A-F]{64}(?=\.)",
        "is a proxy of Entity Framework",
        r"\1",
    ),
    # Clojure's compiler: `fn__1234`, and `name__1234` of local functions, different in each process.
    _without("__", r"(?:\$(?:fn|iter)|(?<=[^$.]))(?:__\d{1,9}){1,4}(?=[$.])", "is numbered by Clojure"),
    # Kotlin, Groovy.
    Made("$", _kotlin, "is a function object of Kotlin"),
    _without(
        "$_",
        r"\$_(\w+?)_(?:closure|lambda)\d+(?:\$_(?:closure|lambda)\d+)*\.(?:doCall|call)\Z",
        "is a closure, numbered by Groovy",
        r".\1",
    ),
    _without("$lambda$", r"\$lambda\$\d+(?=\$|\Z)", "is a lambda, numbered by Kotlin"),
    # Containers and object mappers: a proxy has the methods of the class behind it.
    _without("$$$view", r"\$\$\$view\d+", "is a view of a bean, numbered by JBoss"),
    _without(
        "_$$_", r"(?:\$Proxy)?\$?_\$\$_(?:javassist|jvst|Weld)[\w-]*", "is a proxy of Javassist or Weld"
    ),
    _without(
        "$Hibernate",
        r"\$Hibernate(?:Proxy|Instantiator|AccessOptimizer)\w*(?:\$\w+)?",
        "is made by Hibernate",
    ),
    _without("$$", r"\$\$(?:EnhancerBy\w+|SpringCGLIB)\$\$\w*", "is a proxy of Spring, Guice or CGLIB"),
    _without("_ClientProxy.", r"_ClientProxy(?=\.)", "is a proxy of Quarkus"),
    _without("_Subclass.", r"_Subclass(?=\.)", "is a subclass, made by Quarkus"),
    _without("$MockitoMock$", r"\$MockitoMock\$\w+", "is numbered by Mockito"),
    _without("$Proxy", r"\$Proxy\d+", "is a proxy, numbered by the JVM"),
    # Spark's `WholeStageCodegenExec` and `CodeGenerator`.
    _without("CodegenStage", r"(?<=CodegenStage)\d+", "is the number of a stage of Spark"),
    _without("GeneratedClass$", r"_\d+\$?\Z", "is numbered by Spark"),
    # javac, D8 and R8.
    Made("lambda$", _lambda_method, "is the method of a lambda"),
    _without("Lambda", r"-?\$\$Lambda\$?[\w/-]*|\$\$\w+SyntheticLambda[\w$]*", "is the class of a lambda"),
    _without("$", r"\$(?:default|suspendImpl)\Z", "is made by Kotlin"),
    _without("$", r"\$\d+(?=[.$]|\Z)|\$(?=\.)", "is the number of an anonymous class"),
    _without("..", r"\.(?=\.)", "repeats"),
)
_NATIVE: Final = (
    Made("", demangled, "is mangled"),
    Made("", plain_name, "is the name's length"),
    _without("[abi:", r"\[abi:\w+\]", "is a tag of the ABI"),
    Made("]", _go, "are type arguments of Go"),
    _without(
        "<",
        r"\A<(?P<type>[\w:&]+)(?:<.*?>)?(?: as [^>]+(?:>[^>:]*)?)?>(?=::)",
        "is a type of Rust",
        r"\g<type>",
    ),
    # Swift describes the compiler's form of a function, and then names it.
    _without(
        " ",
        r"\A(?:[a-z]+ (?:[^<]|<[^>]*>)*? (?:in|of|for) |(?:@objc|specialized|merged|static) "
        r"|\(extension in [^)]*\):|\(\d+\) )+",
        "describes the form that Swift gave it",
    ),
    _without(" -> ", r"\)(?: async)?(?: throws)? -> .*\Z", "is the result", ")"),
    _without(
        "::",
        r"::(?:\{lambda\(.*?\)#\d+\}|\$_\d+|'lambda\d*'(?:\([^)]*\))?)(?:::operator\(\).*)?(?= |\Z|\(|::)",
        "is a lambda, numbered by the compiler",
    ),
)
_PHP_CLASS: Final = _without(
    "@anonymous",
    r"(?<=@anonymous)[\0/\\].*?(?=::[^:]*\Z|\Z)",
    "are file, line and address, which PHP adds to an anonymous class",
)
_SCRIPTS: Final = (
    _PHP_CLASS,
    # By their place since PHP 8.4.
    _without("{closure", r"\A.*(?:\{closure(?::[^}]*)?\}|::\{closure\})\Z", "is a closure of PHP"),
    _without("<fn>", r"(?:\.<fn>)+\Z", "is a closure of Dart"),
    # `ActionView::Template#method_name`: a hash and an object's id, different in each process.
    _without("__", r"_{2,3}\d{1,20}_\d{1,20}\Z", "is numbered by Rails"),
    # `Exception.format_mfa` of Elixir says it in words: `anonymous fn/1 in Shop.Cart.total/1`.
    _without(
        "-fun-",
        r"\A([\w.:']*[.:])?['\"]?-([^/]+/\d+)-fun-\d+-['\"]?/\d+\Z",
        "is a function without a name, numbered by Erlang",
        r"\1\2",
    ),
)
_TABLES: Final = {
    Family.JAVASCRIPT: _JAVASCRIPT,
    Family.JVM: _JVM,
    Family.NATIVE: _NATIVE,
    Family.OTHER: _SCRIPTS,
}
