"""Whether a runtime raised an error itself, so that its message holds nothing of the app's. Pure.

A runtime words its errors by version and language, and names values and types. An app words its own errors itself.
"""

from functools import lru_cache
from typing import Final

# JVM Specification, 2.10 and 5; Kotlin's and Scala's runtimes. Errors by their own name, in any package.
_JVM: Final = """
    AbstractMethodError ArithmeticException ArrayIndexOutOfBoundsException ArrayStoreException
    BootstrapMethodError ClassCastException ExceptionInInitializerError IllegalAccessError
    IllegalMonitorStateException IncompatibleClassChangeError IndexOutOfBoundsException
    NegativeArraySizeException NoClassDefFoundError NoSuchFieldError NoSuchMethodError NullPointerException
    OutOfMemoryError StackOverflowError StringIndexOutOfBoundsException UnsatisfiedLinkError VerifyError
    KotlinNullPointerException MatchError NoWhenBranchMatchedException TypeCastException
    UninitializedPropertyAccessException
"""
# Common Language Infrastructure (ECMA-335), I.12.4.2 and III.
_DOTNET: Final = """
    AccessViolationException ArrayTypeMismatchException DivideByZeroException IndexOutOfRangeException
    InvalidCastException MissingFieldException MissingMethodException NullReferenceException
    OutOfMemoryException OverflowException StackOverflowException TypeInitializationException TypeLoadException
"""
# Python's built-in exceptions, but for those that are for programs to raise.
_PYTHON: Final = """
    AttributeError FileExistsError FileNotFoundError ImportError IndexError KeyError MemoryError
    ModuleNotFoundError NameError OSError OverflowError PermissionError RecursionError StopIteration TypeError
    UnboundLocalError UnicodeDecodeError UnicodeEncodeError ZeroDivisionError
"""
# Ruby's and PHP's core, Dart's, Go's.
_OTHERS: Final = """
    FloatDomainError FrozenError LocalJumpError NoMatchingPatternError NoMethodError SystemStackError
    ArgumentCountError DivisionByZeroError ErrorException UnhandledMatchError LateInitializationError RangeError
    TypeAssertionError _CastError _TypeError
"""
_RAISED: Final = frozenset(f"{_JVM} {_DOTNET} {_PYTHON} {_OTHERS}".split())
# An assertion says where a test failed, not which code is broken: the test is the site, and its message has values.
_TESTS: Final = (
    "AssertionFailedError AssertionError ComparisonFailure MultipleFailuresError ArrayComparisonFailure"
)
_ASSERTIONS: Final = frozenset(_TESTS.split())
# A recursion without end, in the words of the JVM, .NET, Python, Ruby, V8 and SpiderMonkey.
_DEEP: Final = """
    StackOverflowError StackOverflowException RecursionError SystemStackError RangeError InternalError
"""
_TOO_DEEP: Final = frozenset(_DEEP.split())
_REMEMBERED: Final = 1024


@lru_cache(maxsize=_REMEMBERED)
def is_assertion(kind: str) -> bool:
    """Whether an error is a failed assertion."""
    return _own_name(kind) in _ASSERTIONS


@lru_cache(maxsize=_REMEMBERED)
def by_runtime(kind: str) -> bool:
    """Whether errors of this class are the runtime's own."""
    return _own_name(kind) in _RAISED


@lru_cache(maxsize=_REMEMBERED)
def is_too_deep(kind: str) -> bool:
    """Whether an error may be that of a recursion without end."""
    return _own_name(kind) in _TOO_DEEP


def _own_name(kind: str) -> str:
    return kind[max(kind.rfind("."), kind.rfind(":"), kind.rfind("\\")) + 1 :]
