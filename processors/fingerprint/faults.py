"""One key for the same fault in the words of V8, SpiderMonkey, JavaScriptCore, Hermes and Chakra.

Each engine says the same thing in its own sentence, and each version changes it; the sentence names the same property
where it names one. What a sentence of an application says is none of this module's business: it answers nothing.
"""

import re
from functools import lru_cache

# The longest sentence of an engine that matters; JavaScriptCore quotes the source, which can be a whole minified line.
_CHARACTERS = 400

_NULLISH = "(?:undefined|null)"
_SENTENCE = re.compile(
    # V8 since 9.3; before, and Hermes.
    rf"Cannot (?:read|set) propert(?:y|ies) of {_NULLISH} \((?:reading|setting) '(?P<v8>[^']*)'\)"
    rf"|Cannot (?:read|set) property '?(?P<v8old>.+?)'? of {_NULLISH}(?: or {_NULLISH})?\Z"
    # SpiderMonkey since 80.
    rf"|can't access property (?:\"(?P<sm>[^\"]*)\"|(?P<smindex>[^,]+)), .+ (?:is|are) {_NULLISH}"
    # JavaScriptCore.
    rf"|'?{_NULLISH}'? is not an object \(evaluating '(?P<jsc>.*)'\)"
    # Chakra.
    rf"|Unable to (?:get|set) (?:value of the )?property '(?P<chakra>[^']*)'(?: of {_NULLISH}(?: or {_NULLISH})?(?: reference)?|: object is {_NULLISH}.*)"
    # Reading by a computed name (Hermes); what was read isn't told.
    rf"|(?P<hermesindex>Cannot convert {_NULLISH} value to object)"
    # Destructuring.
    rf"|Cannot destructure (?:property )?'?(?P<destructure>[\w$]+)?.*(?:as it is|because it is) {_NULLISH}.*"
    rf"|(?P<iterate>.*(?:is not iterable|is not a function or its return value is not iterable|[sS]ymbol\.iterator).*)"
    # Hermes tells no name; JavaScriptCore adds "(In '...', '...' is undefined)"; Chakra has its own verb.
    r"|(?P<call>.{1,300}?) is not a function(?:[.,]? ?\((?:In |near ).*)?\Z"
    r"|Object doesn't support property or method '(?P<chakracall>[^']*)'"
    r"|(?P<new>.{1,300}?) is not a constructor.*"
    r"|(?P<unknown>[\w$.]+) is not defined\Z"
    r"|Can't find variable: (?P<jscunknown>[\w$.]+)\Z"
    r"|Property '(?P<hermesunknown>[^']+)' doesn't exist\Z"
    r"|'(?P<chakraunknown>[\w$]+)' is (?:undefined|not defined)\Z"
    r"|(?P<early>Cannot access (?:uninitialized variable|'.*' before initialization|.*)|can't access lexical declaration .*)\Z"
    r"|(?P<constant>Assignment to constant variable.*|Attempted to assign to readonly property.*|invalid assignment to const.*|Cannot assign to read[ -]?only property.*|\"?.*\"? is read-only)\Z"
    r"|(?P<deep>Maximum call stack size exceeded.*|too much recursion|Stack overflow.*|Out of stack space.*)\Z"
    r"|(?P<memory>[oO]ut of memory.*|allocation size overflow|Array buffer allocation failed.*|Invalid string length.*)\Z"
    r"|(?P<length>Invalid (?:typed )?array(?: buffer)? length.*|invalid array length.*|Array (?:length|size) .*|Length out of range.*)\Z"
    r"|(?P<date>Invalid time value|[iI]nvalid [dD]ate|Date value out of bounds|date value is not finite.*)\Z"
    r"|(?P<uri>URI malformed|URI error|malformed URI sequence|Malformed (?:de|en)codeURI input|The URI to be (?:de|en)coded .*)\Z"
    r"|(?P<cyclic>Converting circular structure to JSON.*|JSON\.stringify cannot serialize cyclic structures.*|cyclic object value|Circular reference in value argument .*|cyclical structure in JSON object)\Z"
    r"|(?P<json>JSON\.parse: .*|JSON Parse error: .*|Unexpected (?:token|end|number|string|non-whitespace).* JSON\b.*|.* is not valid JSON|.* in JSON at position \d+.*|Invalid character: .*)\Z"
    r"|(?P<regexp>Invalid regular expression.*|invalid regexp .*|unterminated .*parenthetical.*)\Z"
    r"|(?P<chunk>Loading (?:CSS )?chunk .+ failed.*|Failed to fetch dynamically imported module.*|error loading dynamically imported module.*|Importing a module script failed.*)\Z"
    r"|(?P<fetch>Failed to fetch|Load failed|NetworkError when attempting to fetch resource\.?|Network request failed)\Z"
    r"|(?P<script>Script error\.?)\Z",
    re.DOTALL,
)

# Groups whose text is the name of a property or variable, and the fault they tell of.
_NAMED = {
    "v8": "null",
    "v8old": "null",
    "sm": "null",
    "smindex": "null",
    "chakra": "null",
    "destructure": "null",
    "unknown": "undefined",
    "jscunknown": "undefined",
    "hermesunknown": "undefined",
    "chakraunknown": "undefined",
    "chakracall": "call",
}
FAULT_TYPES = {
    "null": "TypeError",
    "call": "TypeError",
    "new": "TypeError",
    "iterate": "TypeError",
    "undefined": "ReferenceError",
    "json": "SyntaxError",
    "deep": "RangeError",
}
"""The class that an engine gives to a fault, by the first word of the fault's key."""

_LAST_NAME = re.compile(r"([A-Za-z_$][\w$]*)\s*\Z")
_ASSIGNMENT = re.compile(r"(?<![=!<>])=(?![=>])")
_INDEX = re.compile(r"\d+\Z")


@lru_cache(maxsize=2048)
def fault(message: str) -> str | None:
    """The engine-neutral key of an engine's message, such as `null.price` or `call.map`; None for any other message."""
    found = _SENTENCE.match(message[:_CHARACTERS])
    if found is None:
        return None
    kind = found.lastgroup or ""
    text = found.group(kind) or ""
    if kind in _NAMED:
        return f"{_NAMED[kind]}.{_property(text)}"
    if kind == "jsc":
        return f"null.{_last_accessed(text)}"
    if kind == "hermesindex":
        return "null.[]"
    if kind in {"call", "new"}:
        return f"{kind}.{_callee(text)}"
    return kind


def is_weak(known: str) -> bool:
    """Whether a fault names nothing: many places of one program can have it."""
    return known.endswith((".", ".[]")) or "." not in known


def _property(name: str) -> str:
    """An index is one whichever it is: other engines only show the expression that computed it."""
    return "[]" if _INDEX.match(name) else name


def _last_accessed(expression: str) -> str:
    """The property whose access failed in a source expression: `a.b(c).d` gives `d`, `a[i]` gives `[]`."""
    assignment = _ASSIGNMENT.search(expression)
    if assignment is not None:
        expression = expression[: assignment.start()]
    expression = expression.rstrip()
    if expression.endswith("]"):
        return "[]"
    if expression.endswith(")"):
        expression = expression[: _opening(expression)]
    name = _LAST_NAME.search(expression[-100:])
    return name.group(1) if name else "[]"


def _opening(expression: str) -> int:
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
    """The name of what was called; bare names are a minifier's or a value's, and Hermes has none."""
    if "." not in expression:
        return ""
    name = _LAST_NAME.search(expression[-100:])
    return name.group(1) if name else ""
