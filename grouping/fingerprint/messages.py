"""The template of a message: its variable parts are replaced."""

import re
from itertools import chain, compress, product

LINES = 2
"""The first two lines describe the error; more is detail."""
# Bounds the cost of hostile messages.
_CHARACTERS = 600
# Maximum length of a hashed template.
_TEMPLATE_CHARACTERS = 300

# A letter of a token: the characters of identifiers, addresses, times and versions, and Arabic separators.
_WORD = r"[\w$#@.:%+\-/*~\u066b\u066c]"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_UNIT = (
    r"(?:[kKMGT]i?B|[bB]ytes?|[mµnu]?s|secs?|seconds?|mins?|minutes?|hours?|days?|msecs?|milliseconds?|%|°?C)"
)
# Variable parts, in the order of matching. The first lists are tried only if a text has their characters.
_ADDRESSES = (
    # A method of HTTP and its target, whose path without ids names the failed route (RFC 9110, 9.1).
    r"\b(?P<http>(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (?:https?://[^\s/\"'<>]{1,200})?/[^\s\"'<>()]{0,300})",
    r"""\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s"'<>()\]}]+""",
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+",
    r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\]{1,3}[\w.@%+~$-]+){2,}[/\\]?",
)
_QUOTES = (
    r'"(?P<verb>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^"\n]{0,400}"',
    r'"[^"\n]{0,200}"',
    r"(?<!\w)'[^'\n]{0,200}'(?!\w)",
    r"`[^`\n]{0,200}[`']",
    r"«[^»\n]{0,200}»|“[^”\n]{0,200}”",
)
_CLOCKS = (
    # A MAC address (IEEE 802); a time with its zone (RFC 2822, 3.3).
    r"\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b",
    r"\b\d\d:\d\d:\d\d (?!GET\b|PUT\b)(?:[A-Z]{2,4}T|UTC?|MSK)\b",
)
_ALWAYS = (
    rf"(?<!{_WORD})[a-z][a-z_-]*(?:\.[a-z][a-z_-]*){{2,}}(?!\w|[.:/@-]\w)",
    rf"(?<!{_WORD})[a-z]\w*(?:\.[\w$]+){{2,}}(?<!Exception)(?<!Error)(?<!Failure)(?!\w|[.:/@$-]\w)",
    rf"\b(?:{_DAY},? +)?(?:{_MONTH} +\d{{1,2}}|\d{{1,2}} {_MONTH})\b(?:,? +\d{{4}}\b)?",
    rf"(?<!{_WORD})(?:<?\d[\d.,]{{0,30}}+ ?{_UNIT}(?!\w)|{_WORD}*\d(?:{_WORD}*[\w$#@%*])?)",
    r"\b[0-9a-f]{8,64}\b",
    r"(?<=[:=]) ?(?:true|false|null|nil|none|yes|no|True|False|None)\b",
    r"(?<=\bfor user )[\w.-]+|(?<=\buser )[\w.-]{1,64}(?= (?:from|by|on|at|in|with|for|port|\[|\())",
)
_HAS_ADDRESSES = re.compile(r"[/\\@]")
_DASHES_OF_MAC = 4
_HAS_QUOTES = re.compile(r"[\"'`«“]")
# A short number after such a word distinguishes errors; other numbers count or identify.
_CODE = (
    r"(?P<code>\b(?:[sS]tatus(?: [cC]ode)?|[cC]ode|[eE]rrno|[eE]rror|HTTP)[ :=]{0,2}#?-?\d{1,4}(?![\w.:/-]))"
)


def _varying(before: str) -> dict[tuple[bool, ...], re.Pattern[str]]:
    """One expression for each combination of characters in a text.

    Trying all alternatives at every letter is expensive.
    """
    return {
        traits: re.compile(
            before
            + "|".join([*chain.from_iterable(compress((_ADDRESSES, _QUOTES, _CLOCKS), traits)), *_ALWAYS])
        )
        for traits in product((False, True), repeat=3)
    }


_LOGGED = _varying("")
_THROWN = _varying(f"{_CODE}|")
_VALUE = re.compile(
    r"\b([A-Za-z_][\w.]{0,60})=(?!=)[^\s,;(){}\[\]]*(?:\{[^{}]{0,100}\}|\([^()]{0,100}\)|\[[^\[\]]{0,100}\])?"
)
_ORIGIN = re.compile(r"\Ahttps?://[^/]*")
# A segment with a digit, but for a version.
_ID = re.compile(r"(?<=/)(?!v\d{1,2}(?:/|\Z))[^/]*\d[^/]*")
# A message in JSON is read by its leaves, after the names that they have. (RFC 8259)
_JSON = re.compile(r"\s*[\[{]\s*[\[{\"]")
_LEAF = re.compile(r'"((?:[^"\\]|\\.){0,200})"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b')
_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"<\*>(?:[\s,.:;/|&+-]{0,8}<\*>)+")


def template(message: str) -> str:
    """The template of a message without a stack: its first two lines, with variable parts as `<*>`."""
    head = " ".join(message[:_CHARACTERS].strip().split("\n", LINES)[:LINES])
    return _tidy(_LOGGED[_traits(head)].sub(_placeholder, head))


def headline(message: str) -> str:
    """The template of the first line, with error codes: different messages of one site are different errors."""
    head = message[:_CHARACTERS].strip().partition("\n")[0]
    return _tidy(_THROWN[_traits(head)].sub(_placeholder, head))


def leaves(message: str) -> str:
    """The names and leaves of a message in JSON; empty for any other."""
    if _JSON.match(message) is None:
        return ""
    return " ".join(
        [f"{found[1] or found[0]}{':' * bool(found[2])}" for found in _LEAF.finditer(message[:_CHARACTERS])]
    )


def _traits(text: str) -> tuple[bool, ...]:
    return (
        _HAS_ADDRESSES.search(text) is not None,
        _HAS_QUOTES.search(text) is not None,
        text.count(":") > 1 or text.count("-") > _DASHES_OF_MAC,
    )


def _tidy(text: str) -> str:
    if "=" in text:
        text = _VALUE.sub(r"\1=<*>", text)
    text = _REPEATED.sub("<*>", text)
    return _SPACE.sub(" ", text)[:_TEMPLATE_CHARACTERS].strip()


def _placeholder(found: re.Match[str]) -> str:
    if found.lastgroup == "code":
        return found[0]
    if found.lastgroup == "http":
        verb, _, target = found[0].partition(" ")
        path = _ORIGIN.sub("", target).partition("?")[0].partition("#")[0]
        return f"{verb} {_ID.sub('<*>', path)}"
    return f"<*> {found['verb']}" if found.lastgroup == "verb" else "<*>"
