"""Names in the source, of names that compilers, transpilers and runtimes made. Pure."""

import re
from typing import Final

from grouping.fingerprint import javascript
from grouping.fingerprint.frames import Family
from grouping.fingerprint.mangling import demangled

# Babel numbers the bodies of a file's asynchronous functions (babel-plugin-transform-regenerator).
_BABEL: Final = re.compile(r"_callee\d*\$?\Z")
# Hermes names what it makes of a function after it.
_HERMES: Final = re.compile(r"\A\?anon_\d+_")
# What engines write before a name: words such as `async`, or what called it with an asterisk.
_BEFORE: Final = re.compile(r"\A[\w ]+\*|(?<![(<])\b[a-z]+ (?=[\w$<])")
# A class field that is compiled into the constructor.
_FIELD: Final = re.compile(r"\A(?:[\w$]+\.)?_?(?:this|self)\d*\.(?=[\w$]+\Z)")
# SpiderMonkey and V8 name evaluated code by the line that evaluates it.
_EVALUATED: Final = re.compile(r" line \d+ > .*\Z")
# Kotlin's function objects are classes, and methods since 2.0; their methods' names are the language's.
_KOTLIN_OBJECT: Final = frozenset({"invoke", "invokeSuspend", "emit"})
_WORD: Final = re.compile(r"\w+")
_KOTLIN_METHOD: Final = re.compile(r"\$(?:default|suspendImpl|lambda\$\d+)\Z|\$lambda\$\d+(?=\$|\Z)")
_GROOVY: Final = re.compile(
    r"\$_(?P<owner>\w+?)_(?:closure|lambda)\d+(?:\$_(?:closure|lambda)\d+)*\.(?:doCall|call)\Z"
)
_ARITY: Final = re.compile(r"`\d{1,3}(?:\[[^\]]*\])?")
# Type arguments of Go; Objective-C's methods begin with a bracket.
_GO_ARGUMENTS: Final = re.compile(r"\[[\w./,*\[\] ]*\](?=\.|\Z)")
# Swift describes what the compiler made of a function, and then names it.
_SWIFT_MADE: Final = re.compile(r"\A(?:[a-z]+ (?:[^<]|<[^>]*>)*? (?:in|of|for) )+")
_SWIFT_RESULT: Final = re.compile(r"\)(?: async)?(?: throws)? -> .*\Z")
_ABI_TAG: Final = re.compile(r"\[abi:\w+\]")
_LAMBDA: Final = re.compile(
    r"::(?:\{lambda\(.*?\)#\d+\}|\$_\d+|'lambda\d*'(?:\([^)]*\))?)(?:::operator\(\).*)?(?= |\Z|\(|::)"
)
_RUST_TYPE: Final = re.compile(r"\A<(?P<type>[\w:&]+)(?:<.*?>)?(?: as [^>]+(?:>[^>:]*)?)?>(?=::)")
# PHP names closures by their place since 8.4.
_PHP_CLOSURE: Final = re.compile(r"(?:\{closure(?::[^}]*)?\}|::\{closure\})\Z")
_DART: Final = re.compile(r"(?:\.<fn>)+\Z")


def source_name(function: str, family: Family, file: str) -> str:
    """A function's name as its source has it, before `frames` cleans it; empty for one without a name."""
    if family is Family.OTHER:
        return _of_ruby(function) if file.endswith(".rb") else _of_scripts(function)
    return _OF_FAMILY[family](function)


def source_file(file: str) -> str:
    """A file, without the line whose code was evaluated."""
    return _EVALUATED.sub("", file) if " > " in file else file


def _of_javascript(function: str) -> str:
    if "_callee" in function and _BABEL.match(function):
        return ""
    if " " in function or "*" in function:
        return _of_description(function)
    if function[:1] == "?":
        return _HERMES.sub("", function)
    return _FIELD.sub("", function) if "this" in function or "self" in function else function


def _of_description(text: str) -> str:
    """A name has no space, so what is left with one describes a function without a name, in the words of an engine."""
    name, alias, other = text.partition(" [as ")
    name = "" if text in javascript.ANONYMOUS else _BEFORE.sub("", name)
    return "" if " " in name else name + alias + other


def _of_jvm(function: str) -> str:
    if "$" in function:
        function = _GROOVY.sub(r".\g<owner>", _of_kotlin(function))
        function = _KOTLIN_METHOD.sub("", function)
    return _ARITY.sub("", function) if "`" in function else function


def _of_kotlin(function: str) -> str:
    """The method whose function object it is: `Cart.total` of `Cart$total$1$2.invoke`."""
    owner, _, method = function.rpartition(".")
    *names, number = owner.split("$")
    if method not in _KOTLIN_OBJECT or not number.isdecimal():
        return function
    first = len(names)
    # No expression, which would try each beginning anew.
    while first > 1 and _WORD.fullmatch(names[first - 1]):
        first -= 1
    return function if first == len(names) else f"{'$'.join(names[:first])}.{names[first]}"


def _of_ruby(function: str) -> str:
    """The method: since Ruby 3.4 its class stands before it (Feature #19117)."""
    return function[max(function.rfind("#"), function.rfind(".")) + 1 :]


def _of_scripts(function: str) -> str:
    if "{closure" in function and _PHP_CLOSURE.search(function):
        return ""
    return _DART.sub("", function)


def _of_native(symbol: str) -> str:
    name = demangled(symbol)
    if name[:2] in {"-[", "+["}:
        return name
    if "[" in name:
        name = _GO_ARGUMENTS.sub("", _ABI_TAG.sub("", name))
    if name.startswith("<"):
        name = _RUST_TYPE.sub(r"\g<type>", name)
    if " in " in name or " for " in name or " of " in name:
        name = _SWIFT_MADE.sub("", name)
    if " -> " in name:
        name = _SWIFT_RESULT.sub(")", name)
    return _LAMBDA.sub("", name) if "::" in name else name


_OF_FAMILY: Final = {
    Family.JAVASCRIPT: _of_javascript,
    Family.JVM: _of_jvm,
    Family.NATIVE: _of_native,
}
