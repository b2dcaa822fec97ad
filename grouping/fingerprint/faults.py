"""One key for the same error in the words of V8, SpiderMonkey, JavaScriptCore, Hermes and Chakra. Pure.

Messages differ by engine and version; most name the property or the variable. Messages of applications have no key.
Sources: the engines' messages; the error reference of MDN; the names of DOMException in WebIDL.
"""

import re
from functools import lru_cache
from typing import Final

# The longest relevant message; JavaScriptCore quotes the source, which can be a whole minified line.
_CHARACTERS: Final = 400
DOM: Final = "dom"
"""The fault of a DOMException."""
# Texts of `window.onerror`, a browser's console and zone.js around an error.
_AROUND: Final = re.compile(
    r"(?:(?P<promise>Uncaught \(in promise\):?|Unhandled Promise rejection:)|Uncaught) "
    r"(?:(?P<type>[A-Z]\w*(?:Error|Exception)): )?"
)
_ZONE: Final = " ; Zone: "
_NULLISH: Final = "(?:undefined|null)"
# All engines say "property", its name in quotes, and the null value; an app's own sentence has the plain class.
_NULL_PROPERTY: Final = re.compile(
    rf"""(?=.*(?<!['"])\b{_NULLISH}\b).*?\bpropert(?:y|ies)\b[^'"]*(?P<quote>['"])(?P<name>.*?)(?P=quote)""",
    re.DOTALL,
)
_READING: Final = ("Cannot read ", "Cannot set ", "can't access ")
# Messages with a name: the name of the group starts with the error, and its match is the name.
_NAMING: Final = (
    rf"can't access property (?P<null>[^,]+), .+ (?:is|are) {_NULLISH}",
    r"(?P<undeclared_v8>[\w$.]+) is not defined\Z",
    r"Can't find variable: (?P<undeclared_jsc>[\w$.]+)\Z",
    r"Property '(?P<undeclared_hermes>[^']+)' doesn't exist\Z",
    r"'(?P<undeclared_chakra>[\w$]+)' is (?:undefined|not defined)\Z",
    r"Object doesn't support property or method '(?P<call_chakra>[^']*)'",
    # A quoted source text.
    rf"'?{_NULLISH}'? is not an object \(evaluating '(?P<accessed>.*)'\)",
    # Reading by a computed name in Hermes, Object.keys() in all, a pattern in V8: the message omits the name.
    rf"(?P<index>(?:Cannot|can't) convert {_NULLISH}(?: or {_NULLISH})?(?: value)? to object"
    rf"|Cannot destructure .* as it is {_NULLISH})",
)
# Messages without a name, by error.
_PLAIN: Final = {
    "not iterable": r".*is not iterable.*|.*its return value is not iterable|.*[sS]ymbol\.iterator.*"
    r"|iterator method is not callable"
    r"|Spread syntax requires .*|Invalid attempt to \w+ non-iterable.*|\w+ is not a function \(near '\.\.\..*",
    "instanceof": r"(?:Right[- ]hand side|right operand) of '?instanceof'? .*|invalid '?instanceof'? operand.*",
    "in operator": r"[cC]annot use 'in' operator .*|right-hand side of 'in' .*|right operand of 'in' .*"
    r"|.* is not an Object\. \(evaluating '.* in .*'\)",
    "access before initialization": r"Cannot access (?:uninitialized variable|'.*' before initialization).*"
    r"|can't access lexical declaration .*",
    "read-only": r"Assignment to constant variable.*|Attempted to assign to readonly property.*"
    r"|invalid assignment to const.*"
    r"|Cannot assign to (?:read[ -]?only )?property .*|\".*\" is read-only|.*has only a getter"
    r"|setting getter-only property.*"
    r"|.*[oO]bject (?:that )?is not extensible.*|Cannot add new property .*|Cannot delete property .*"
    r"|property \".*\" is non-configurable .*|Unable to delete property\.?|Property is not configurable",
    "stack overflow": r"Maximum call stack size exceeded.*|too much recursion|Stack overflow.*",
    "out of memory": r"[oO]ut of memory.*|allocation size overflow|Array buffer allocation failed.*"
    r"|Invalid string length.*",
    "array length": r"[iI]nvalid (?:typed )?array(?: buffer)? length.*|Array (?:length|size) .*|Length out of range.*",
    "reduce of empty array": r"[rR]educe of empty array .*|.*reduce\(\) requires .*",
    "digits": r"to(?:Fixed|Precision|Exponential)(?:\(\))? .*must be between.*|precision -?\w+ out of range",
    "repeat count": r"Invalid count value: .*|repeat count must be .*|String\.prototype\.repeat .*",
    "code point": r"Invalid code point .*|.* is not a valid code point"
    r"|Arguments contain a value that is out of range of code points",
    "invalid date": r"Invalid time value|[iI]nvalid [dD]ate|Date value out of bounds|date value is not finite.*",
    "malformed URI": r"URI malformed|URI error|malformed URI sequence|Malformed (?:de|en)codeURI input"
    r"|The URI to be (?:de|en)coded .*",
    "cyclic JSON": r"Converting circular structure to JSON.*"
    r"|JSON\.stringify cannot serialize cyclic structures.*|cyclic object value",
    "BigInt mixed": r"Cannot mix BigInt and other types.*|can't convert BigInt to number"
    r"|Invalid mix of BigInt .*|Cannot convert (?:a )?BigInt (?:value )?to (?:a )?number"
    r"|Conversion from 'BigInt' to 'number' is not allowed\.?",
    "Symbol to string": r"Cannot convert a [sS]ymbol(?: value)? to a string|can't convert symbol to string",
    "Symbol to number": r"Cannot convert a [sS]ymbol(?: value)? to a number|can't convert symbol to number",
    "bad JSON": r"JSON\.parse: .*|JSON Parse error: .*"
    r"|Unexpected (?:token|end|number|string|non-whitespace).* JSON\b.*|.* is not valid JSON"
    r"|.* in JSON at position \d+.*",
    "bad regular expression": r"Invalid regular expression.*|Invalid RegExp.*|invalid regexp .*"
    r"|unterminated (?:parenthetical|character class).*"
    r"|nothing to repeat",
    "illegal invocation": r"Illegal invocation"
    r"|'.*' called on an object that does not implement interface .*|Can only call .* on instances of .*",
    "chunk not loaded": r"Loading (?:CSS )?chunk .+ failed.*|Failed to fetch dynamically imported module.*"
    r"|error loading dynamically imported module.*|Importing a module script failed.*"
    # Vite, for the styles of a chunk that a deployment took away.
    r"|Unable to preload CSS for .*",
    "fetch failed": r"Failed to fetch(?: \([\w.:-]+\))?|Load failed(?: \([\w.:-]+\))?"
    r"|NetworkError when attempting to fetch resource\.?|Network request failed",
    "aborted": r"The user aborted a request\.?|signal is aborted without reason"
    r"|The operation was aborted\.? ?|Fetch is aborted|This operation was aborted",
    "script error": r"Script error\.?",
    "resize observer": r"ResizeObserver loop (?:limit exceeded|completed with undelivered notifications)\.?",
    "bad BigInt": r"Cannot convert .+ to a BigInt|invalid BigInt syntax|Failed to parse String to BigInt",
    "global flag": r"String\.prototype\.(?:matchAll|replaceAll) (?:called with a non-global RegExp argument"
    r"|must be called with a global RegExp"
    r"|argument must not be a non-global regular expression)|replaceAll must be called with a global RegExp",
    "incompatible receiver": r"(?:Method )?[\w.\[\] ]{1,80} called on incompatible .*"
    r"|Bind must be called on a function",
    "prototype cycle": r"[cC]yclic __proto__ value"
    r"|can't set prototype: it would cause a prototype chain cycle",
    "redefined": r"Cannot redefine property: .*|can't redefine non-configurable property .*"
    r"|Attempting to change .{1,80} of an? (?:unconfigurable|readonly) property\.?",
}
# Last, since they fit much: Hermes tells no name; JavaScriptCore adds "(In '...', '...' is undefined)";
# Chakra has its own verb.
_CALLING: Final = (
    # JavaScriptCore's and Hermes' words for the callback of array methods.
    r"(?P<callback>[A-Z]\w{2,12}\.prototype\.\w+"
    r"(?: callback must be a function|\(\) requires a callable argument))\.?\Z",
    r"(?P<call>.{1,300}?) is not a function(?:[.,]? ?\((?:In |near ).*)?\Z",
    r"(?P<new>.{1,300}?) is not a constructor.*|(?P<newhermes>This function cannot be used as a constructor.*)",
)
_SENTENCE: Final = re.compile(
    "|".join(
        [
            *_NAMING,
            *[rf"(?P<plain_{number}>(?:{sentence})\Z)" for number, sentence in enumerate(_PLAIN.values())],
            *_CALLING,
        ]
    ),
    re.DOTALL,
)
_PLAIN_NAMES: Final = tuple(_PLAIN)
_NAMELESS: Final = {"newhermes": "new.", "callback": "call.", "index": "null.[]"}
_WHOLE: Final = frozenset(
    {"stack overflow", "chunk not loaded", "fetch failed", "aborted", "script error", "resize observer"}
)
_LAST_NAME: Final = re.compile(r"([A-Za-z_$][\w$]*)\s*\Z")
_ASSIGNMENT: Final = re.compile(r"(?<![=!<>])=(?![=>])")
_INDEX: Final = re.compile(r"-?\d+\Z")
# Calls that read an object as a whole: `Object.keys(x)`.
_WHOLE_OBJECT: Final = re.compile(r"(?:Object|Reflect)\.\w+\(")
# Maximum length of a name.
_NAME_CHARACTERS: Final = 100
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
    """The engine-neutral key of an error, such as `null.price` or `bad JSON`; None for an app's own."""
    text = message[:_CHARACTERS]
    if kind in _DOM_NAMES and (kind != "SyntaxError" or _SELECTOR.match(text)):
        return "aborted" if kind == "AbortError" else DOM
    if "propert" in text and (kind != "Error" or text.startswith(_READING)):
        property_of = _NULL_PROPERTY.match(text)
        if property_of is not None:
            return f"null.{_key(property_of['name'])}"
    found = _SENTENCE.match(text)
    return None if found is None else _key_of(found)


def _key_of(found: re.Match[str]) -> str:
    group = found.lastgroup or ""
    name, _, detail = group.partition("_")
    if name == "plain":
        return _PLAIN_NAMES[int(detail)]
    if name == "accessed":
        return f"null.{_last_accessed(found[group])}"
    if name in {"call", "new"}:
        return f"{name}.{found[group] if detail else _callee(found[group])}"
    return _NAMELESS[name] if name in _NAMELESS else f"{name}.{_key(found[group])}"


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


def is_weak(known: str) -> bool:
    """Whether an error has no name, so that many places of a program can raise it."""
    return known.endswith((".", ".[]")) or "." not in known


def says_it_all(known: str) -> bool:
    """Whether the messages of an error differ only by engine and version, so that its key loses nothing."""
    return known in _WHOLE


def is_weak_in_build(known: str) -> bool:
    """Whether a fault says little in a build: nameless, or of a name that everything has."""
    fault_of, _, name = known.partition(".")
    return is_weak(known) or (fault_of in {"null", "call", "new"} and name in _BUILT_IN)


def _key(name: str) -> str:
    """Any index has the same key: other engines only show the expression that computed it."""
    return "[]" if _INDEX.match(name) or name in {"undefined", "null"} else name[:_NAME_CHARACTERS]


def _last_accessed(expression: str) -> str:
    """The property whose access failed in a source expression: `a.b(c).d` gives `d`, `a[i]` gives `[]`."""
    assignment = _ASSIGNMENT.search(expression)
    if assignment is not None:
        expression = expression[: assignment.start()]
    expression = expression.rstrip()
    if expression.endswith("]") or _WHOLE_OBJECT.match(expression):
        return "[]"
    if expression.endswith(")"):
        expression = expression[: _opening(expression)]
    name = _LAST_NAME.search(expression[-_NAME_CHARACTERS:])
    return name[1] if name else "[]"


def _opening(expression: str) -> int:
    """The position of the parenthesis that is closed at the end."""
    depth = 0
    for position in range(len(expression) - 1, -1, -1):
        character = expression[position]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            depth -= 1
            if depth == 0:
                return position
    return 0


def _callee(expression: str) -> str:
    """The name of the called function; bare names are a minifier's or a value's, and Hermes has none."""
    if "." not in expression:
        return ""
    name = _LAST_NAME.search(expression[-_NAME_CHARACTERS:])
    return name[1] if name else ""
