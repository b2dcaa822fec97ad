"""Keys of errors that browsers word differently, in addition to those of `javascript_errors`. Pure.

Sources: the error reference of MDN; the names of DOMException in WebIDL; the texts of Chromium and Gecko,
which name the operation.
"""

import re
from functools import lru_cache
from typing import Final

from grouping.fingerprint.javascript_errors import engine_error, is_weak, property_key

_CHARACTERS: Final = 400
DOM: Final = "dom"
"""The fault of a DOMException."""
# Texts of `window.onerror`, a browser's console and zone.js around an error.
_AROUND: Final = re.compile(
    r"(?:(?P<promise>Uncaught \(in promise\):?|Unhandled Promise rejection:)|Uncaught) "
    r"(?:(?P<type>[A-Z]\w*(?:Error|Exception)): )?"
)
_ZONE: Final = " ; Zone: "
# All engines say "property", its name in quotes, and the null value; an app's own sentence has the plain class.
_NULL_PROPERTY: Final = re.compile(
    r"""(?=.*(?<!['"])\b(?:undefined|null)\b).*?\bpropert(?:y|ies)\b[^'"]*(?P<quote>['"])(?P<name>.*?)(?P=quote)""",
    re.DOTALL,
)
_SENTENCES: Final = {
    "BigInt mixed": r"Cannot convert a BigInt value to a number|Conversion from 'BigInt' to 'number' is not allowed\.?",
    "bad BigInt": r"Cannot convert .+ to a BigInt|invalid BigInt syntax|Failed to parse String to BigInt",
    "global flag": r"String\.prototype\.(?:matchAll|replaceAll) (?:called with a non-global RegExp argument"
    r"|must be called with a global RegExp"
    r"|argument must not be a non-global regular expression)|replaceAll must be called with a global RegExp",
    "incompatible receiver": r"(?:Method )?[\w.\[\] ]{1,80} called on incompatible .*"
    r"|Bind must be called on a function",
    "prototype cycle": r"Cyclic __proto__ value"
    r"|(?:can't set prototype: it would cause a prototype chain cycle)|cyclic __proto__ value",
    "redefined": r"Cannot redefine property: .*|can't redefine non-configurable property .*"
    r"|Attempting to change .{1,80} of an? (?:unconfigurable|readonly) property\.?",
}
_SENTENCE: Final = re.compile(
    "|".join(rf"(?P<s{number}>(?:{text})\Z)" for number, text in enumerate(_SENTENCES.values())), re.DOTALL
)
# Chromium; Gecko; WebKit.
_SELECTOR: Final = re.compile(
    r"Failed to execute '\w+' on |.* is not a valid selector|The string did not match the expected pattern"
)
# WebIDL, section 2.8.1, but for those that engines throw too: a SyntaxError only of an operation.
_DOM: Final = """
    HierarchyRequestError WrongDocumentError InvalidCharacterError NoModificationAllowedError NotFoundError
    NotSupportedError InUseAttributeError InvalidStateError InvalidModificationError NamespaceError
    InvalidAccessError SecurityError NetworkError AbortError QuotaExceededError TimeoutError
    InvalidNodeTypeError DataCloneError EncodingError NotReadableError UnknownError ConstraintError DataError
    TransactionInactiveError ReadOnlyError VersionError OperationError NotAllowedError OptOutError SyntaxError
"""
_DOM_NAMES: Final = frozenset(_DOM.split())
# ECMA-262: members of arrays, texts, functions and all objects. A build has many of each, so they say little
# where names are gone.
_MEMBERS: Final = """
    length map filter forEach reduce find findIndex some every includes indexOf lastIndexOf push pop shift
    unshift slice splice concat join reverse sort flat flatMap fill keys values entries split trim replace
    replaceAll match matchAll search startsWith endsWith substring substr charAt charCodeAt padStart padEnd
    repeat toLowerCase toUpperCase toFixed toString toJSON valueOf hasOwnProperty constructor prototype call
    apply bind then catch finally next test exec
"""
_BUILT_IN: Final = frozenset(_MEMBERS.split())


@lru_cache(maxsize=2048)
def fault(kind: str, message: str) -> str | None:
    """The engine-neutral key of an error, by its type and message; None for an app's own."""
    text = message[:_CHARACTERS]
    if kind in _DOM_NAMES and (kind != "SyntaxError" or _SELECTOR.match(text)):
        return "aborted" if kind == "AbortError" else DOM
    found = _NULL_PROPERTY.match(text) if "propert" in text and kind != "Error" else None
    known = engine_error(message) if found is None else f"null.{property_key(found['name'])}"
    if known is not None:
        return known
    found = _SENTENCE.match(text)
    if found is not None and found.lastgroup is not None:
        return tuple(_SENTENCES)[int(found.lastgroup[1:])]
    return None


def thrown(kind: str, message: str) -> tuple[str, str]:
    """The class and message of the thrown error, without the text that reporters wrap around it."""
    found = _AROUND.match(message) if message.startswith("Un") else None
    if found is None or not (found["type"] or found["promise"]):
        return kind, message
    return found["type"] or kind, message[found.end() :].partition(_ZONE)[0]


def fault_type(known: str, kind: str) -> str:
    """The error class to group by: an engine's fault implies one, whichever class is reported.

    A DOMException is its name; browsers are free in the rest of the text (WebIDL, 2.8.1).
    """
    return kind if known == DOM else "engine error"


def is_weak_in_build(known: str) -> bool:
    """Whether a fault says little in a build: nameless, or of a name that everything has."""
    fault_of, _, name = known.partition(".")
    return is_weak(known) or (fault_of in {"null", "call", "new"} and name in _BUILT_IN)
