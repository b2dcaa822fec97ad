"""Which parts of the product a schedule meets: each block of statements of the modules that exactness depends on.

A probe is one store into an array. It is at the beginning of a block, and after each statement behind which
the block may not go on.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

_PACKAGES: Final = (
    *(
        "edge.delivery",
        "processors",
        "processors.aggregator",
        "processors.grouper",
        "rebuild",
        "storage.write",
    ),
    *("storage.exactly_once", "storage.maintain.erase", "storage.maintain.reconcile"),
)
_MODULES: Final = (
    *("broker.commit", "broker.dead_letters", "processors.faust_app.agents", "processors.faust_app.fence"),
    *("processors.faust_app.recovery", "storage.read.events.stored_ids", "storage.shards"),
)
_ENDS: Final = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.Match,
    ast.Return,
)
_NAME: Final = "_met_"
_SIZE: Final = 1 << 14
_met: Final = bytearray(_SIZE)


class Probe(NamedTuple):
    """Where the statements behind a probe begin."""

    module: str
    line: int


PROBES: Final[list[Probe]] = []


def met() -> frozenset[int]:
    """The numbers of the probes that were met since the last call."""
    found = frozenset(number for number in range(len(PROBES)) if _met[number])
    _met[:] = bytes(_SIZE)
    return found


def probe_at(module: str, line: int) -> int:
    """The probe of the statement at a line."""
    before = [(one.line, number) for number, one in enumerate(PROBES) if one.module == module]
    return max(one for one in before if one[0] <= line)[1]


@cache
def install() -> None:
    """Put probes into the functions of the modules."""
    names = [
        f"{package}.{module.name}"
        for package in _PACKAGES
        for module in iter_modules(import_module(package).__path__)
        if not module.ispkg
    ]
    for name in (*names, *_MODULES):
        _probe(import_module(name))


def _probe(module: ModuleType) -> None:
    path = Path(str(module.__file__))
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = list(_probed(module.__name__, node.body))
    codes = {
        code.co_qualname: code
        for code in _codes(compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True))
    }
    setattr(module, _NAME, _met)
    for function in _functions(module):
        code = codes.get(function.__code__.co_qualname)
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code


def _probed(module: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    is_new = is_text = True
    for statement in body:
        if is_new and not (is_text := _is_text(statement)):
            yield _store(module, statement)
        is_new = isinstance(statement, _ENDS) or (is_new and is_text)
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for holder in chain(
                [statement], getattr(statement, "handlers", ()), getattr(statement, "cases", ())
            ):
                for name in ("body", "orelse", "finalbody"):
                    if inner := getattr(holder, name, None):
                        setattr(holder, name, list(_probed(module, inner)))
        yield statement


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a docstring, or a nonlocal or global statement."""
    is_string = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_string or isinstance(statement, ast.Nonlocal | ast.Global)


def _store(module: str, statement: ast.stmt) -> ast.stmt:
    number = len(PROBES)
    PROBES.append(Probe(module, statement.lineno))
    [store] = ast.parse(f"{_NAME}[{number}] = 1").body
    return ast.copy_location(store, statement)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """All that are defined in it, those of classes too."""
    owners: list[Any] = [module]
    while owners:
        for one in list(vars(owners.pop()).values()):
            if getattr(one, "__module__", module.__name__) != module.__name__:
                continue
            if isinstance(one, type):
                owners.append(one)
            for inner in (
                one,
                getattr(one, "__func__", None),
                getattr(one, "fget", None),
                getattr(one, "__wrapped__", None),
            ):
                if isinstance(inner, FunctionType) and inner.__module__ == module.__name__:
                    yield inner
