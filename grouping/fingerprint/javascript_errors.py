"""One key for the same error in messages of V8, SpiderMonkey, JavaScriptCore, Hermes and Chakra.

Messages differ by engine and version; most name the property or the variable. Messages of applications have no key.
"""

import re

# The longest relevant message; JavaScriptCore quotes the source, which can be a whole minified line.
_CHARACTERS = 400

_NULLISH = "(?:undefined|null)"

# Messages with a name: the name of the group starts with the error, and its match is the name.
_NAMING = (
    # V8 since 9.3; V8 before, and Hermes; SpiderMonkey since 80; Chakra.
    rf"Cannot (?:read|set) propert(?:y|ies) of {_NULLISH} \((?:reading|setting) '(?P<null_v8>[^']*)'\)",
    rf"Cannot (?:read|set) property '?(?P<null_old>.+?)'? of {_NULLISH}(?: or {_NULLISH})?\Z",
    rf"can't access property (?:\"(?P<null_sm>[^\"]*)\"|(?P<null_smindex>[^,]+)), .+ (?:is|are) {_NULLISH}",
    r"Unable to (?:get|set) (?:value of the )?property '(?P<null_chakra>[^']*)'"
    rf"(?: of {_NULLISH}.*|: object is {_NULLISH}.*)",
    rf"Cannot destructure (?:property )?'?(?P<null_pattern>[\w$]+)?.*(?:as it is|because it is) {_NULLISH}.*",
    r"(?P<undeclared_v8>[\w$.]+) is not defined\Z",
    r"Can't find variable: (?P<undeclared_jsc>[\w$.]+)\Z",
    r"Property '(?P<undeclared_hermes>[^']+)' doesn't exist\Z",
    r"'(?P<undeclared_chakra>[\w$]+)' is (?:undefined|not defined)\Z",
    r"Object doesn't support property or method '(?P<call_chakra>[^']*)'",
)
# Messages that quote source text or a value.
_QUOTING = (
    rf"'?{_NULLISH}'? is not an object \(evaluating '(?P<accessed>.*)'\)",
    # Reading by a computed name in Hermes, Object.keys() in all: the message omits the name.
    rf"(?P<index>(?:Cannot|can't) convert {_NULLISH}(?: or {_NULLISH})?(?: value)? to object)",
)
# Messages without a name, by error.
_PLAIN = {
    "not iterable": r".*is not iterable.*|.*its return value is not iterable|.*[sS]ymbol\.iterator.*"
    r"|iterator method is not callable"
    r"|Spread syntax requires .*|Invalid attempt to \w+ non-iterable.*|\w+ is not a function \(near '\.\.\..*",
    "class without new": r"Class constructor .*without '?new'?.*|class constructors must be invoked with .*"
    r"|Cannot call a class constructor .*",
    "instanceof": r"(?:Right[- ]hand side|right operand) of '?instanceof'? .*|invalid '?instanceof'? operand.*",
    "in operator": r"[cC]annot use 'in' operator .*|right-hand side of 'in' .*|right operand of 'in' .*"
    r"|.* is not an Object\. \(evaluating '.* in .*'\)",
    "super not called": r"[mM]ust call super constructor .*|'super\(\)' must be called .*",
    "private member": r"Cannot (?:read|write|access) (?:invalid )?private .*|can't access private .*",
    "access before initialization": r"Cannot access (?:uninitialized variable|'.*' before initialization).*"
    r"|can't access lexical declaration .*",
    "read-only": r"Assignment to constant variable.*|Attempted to assign to readonly property.*"
    r"|invalid assignment to const.*"
    r"|Cannot assign to (?:read[ -]?only )?property .*|\".*\" is read-only|.*has only a getter"
    r"|setting getter-only property.*"
    r"|.*[oO]bject (?:that )?is not extensible.*|Cannot add new property .*|Cannot delete property .*"
    r"|property \".*\" is non-configurable .*|Unable to delete property\.?|Property is not configurable",
    "stack overflow": r"Maximum call stack size exceeded.*|too much recursion|Stack overflow.*|Out of stack space.*",
    "out of memory": r"[oO]ut of memory.*|allocation size overflow|Array buffer allocation failed.*"
    r"|Invalid string length.*",
    "array length": r"[iI]nvalid (?:typed )?array(?: buffer)? length.*|Array (?:length|size) .*|Length out of range.*",
    "reduce of empty array": r"[rR]educe of empty array .*|.*reduce\(\) requires .*",
    "digits": r"to(?:Fixed|Precision|Exponential)(?:\(\))? .*must be between.*|precision -?\w+ out of range",
    "radix": r".*radix .*between 2 and 36|radix must be .*|Invalid radix.*",
    "repeat count": r"Invalid count value: .*|repeat count must be .*|String\.prototype\.repeat .*",
    "code point": r"Invalid code point .*|.* is not a valid code point"
    r"|Arguments contain a value that is out of range of code points",
    "invalid date": r"Invalid time value|[iI]nvalid [dD]ate|Date value out of bounds|date value is not finite.*",
    "currency code": r"[iI]nvalid currency code.*|currency is not a well-formed currency code",
    "language tag": r"Incorrect locale information provided|[iI]nvalid language tag.*",
    "malformed URI": r"URI malformed|URI error|malformed URI sequence|Malformed (?:de|en)codeURI input"
    r"|The URI to be (?:de|en)coded .*",
    "cyclic JSON": r"Converting circular structure to JSON.*"
    r"|JSON\.stringify cannot serialize cyclic structures.*|cyclic object value"
    r"|Circular reference in value argument .*|cyclical structure in JSON object",
    "BigInt in JSON": r"Do not know how to serialize a BigInt|BigInt value can't be serialized in JSON"
    r"|JSON\.stringify cannot serialize BigInt.*",
    "BigInt mixed": r"Cannot mix BigInt and other types.*|can't convert BigInt to number"
    r"|Invalid mix of BigInt .*|Cannot convert BigInt to number",
    "Symbol to string": r"Cannot convert a [sS]ymbol(?: value)? to a string|can't convert symbol to string",
    "Symbol to number": r"Cannot convert a [sS]ymbol(?: value)? to a number|can't convert symbol to number",
    "bad JSON": r"JSON\.parse: .*|JSON Parse error: .*"
    r"|Unexpected (?:token|end|number|string|non-whitespace).* JSON\b.*|.* is not valid JSON"
    r"|.* in JSON at position \d+.*|Invalid character: .*",
    "bad regular expression": r"Invalid regular expression.*|Invalid RegExp.*|invalid regexp .*"
    r"|unterminated (?:parenthetical|character class).*"
    r"|nothing to repeat",
    "illegal invocation": r"Illegal invocation"
    r"|'.*' called on an object that does not implement interface .*|Can only call .* on instances of .*",
    "not cloneable": r".*could not be cloned\.?|The object can not be cloned\.?",
    "chunk not loaded": r"Loading (?:CSS )?chunk .+ failed.*|Failed to fetch dynamically imported module.*"
    r"|error loading dynamically imported module.*|Importing a module script failed.*"
    # Vite, for the styles of a chunk that a deployment took away.
    r"|Unable to preload CSS for .*",
    "fetch failed": r"Failed to fetch(?: \([\w.:-]+\))?|Load failed(?: \([\w.:-]+\))?"
    r"|NetworkError when attempting to fetch resource\.?|Network request failed",
    "aborted": r"The user aborted a request\.?|signal is aborted without reason"
    r"|The operation was aborted\.? ?|Fetch is aborted|This operation was aborted",
    "quota": r".*exceeded the quota\.?|The quota has been exceeded\.?",
    "script error": r"Script error\.?",
    "resize observer": r"ResizeObserver loop (?:limit exceeded|completed with undelivered notifications)\.?",
}
# Last, since they fit much: Hermes tells no name; JavaScriptCore adds "(In '...', '...' is undefined)";
# Chakra has its own verb.
_CALLING = (
    # JavaScriptCore's and Hermes' words for the callback of array methods.
    r"(?P<callback>[A-Z]\w{2,12}\.prototype\.\w+"
    r"(?: callback must be a function|\(\) requires a callable argument))\.?\Z",
    r"(?P<call>.{1,300}?) is not a function(?:[.,]? ?\((?:In |near ).*)?\Z",
    r"(?P<new>.{1,300}?) is not a constructor.*|(?P<newhermes>This function cannot be used as a constructor.*)",
)
_SENTENCE = re.compile(
    "|".join(
        [
            *_NAMING,
            *_QUOTING,
            *[rf"(?P<plain_{number}>(?:{sentence})\Z)" for number, sentence in enumerate(_PLAIN.values())],
            *_CALLING,
        ]
    ),
    re.DOTALL,
)
_NAMELESS = {"newhermes": "new.", "callback": "call.", "index": "null.[]"}
_PLAIN_NAMES = tuple(_PLAIN)
_WHOLE = frozenset(
    {"stack overflow", "chunk not loaded", "fetch failed", "aborted", "script error", "resize observer"}
)

_LAST_NAME = re.compile(r"([A-Za-z_$][\w$]*)\s*\Z")
_ASSIGNMENT = re.compile(r"(?<![=!<>])=(?![=>])")
_INDEX = re.compile(r"-?\d+\Z")
# Calls that read an object as a whole: `Object.keys(x)`.
_WHOLE_OBJECT = re.compile(r"(?:Object|Reflect)\.\w+\(")
# Maximum length of a name.
_NAME_CHARACTERS = 100


def engine_error(message: str) -> str | None:
    """The engine-neutral key of an engine's message, such as `null.price` or `bad JSON`; None for any other message."""
    found = _SENTENCE.match(message[:_CHARACTERS])
    kind = found.lastgroup if found is not None else None
    if found is None or kind is None:
        # Only a destructured pattern without a name matches without a group.
        return None if found is None else "null.[]"
    text = found[kind]
    name, _, detail = kind.partition("_")
    if name == "plain":
        return _PLAIN_NAMES[int(detail)]
    if name == "accessed":
        return f"null.{_last_accessed(text)}"
    if name in {"call", "new"}:
        return f"{name}.{text if detail else _callee(text)}"
    return _NAMELESS[name] if name in _NAMELESS else f"{name}.{property_key(text)}"


def is_weak(known: str) -> bool:
    """Whether an error has no name, so that many places of a program can raise it."""
    return known.endswith((".", ".[]")) or "." not in known


def says_it_all(known: str) -> bool:
    """Whether the messages of an error differ only by engine and version, so that its key loses nothing."""
    return known in _WHOLE


def property_key(name: str) -> str:
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
