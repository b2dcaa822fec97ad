"""The template of a message: its variable parts are replaced, but for values that tell problems apart. Pure."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

LINES: Final = 2
"""The first two lines describe the error; more is detail."""
CHARACTERS: Final = 600
"""Maximum of a message: bounds the cost of hostile ones."""
# Maximum length of a hashed template.
_TEMPLATE_CHARACTERS: Final = 300

# A letter of a token: the characters of identifiers, addresses, times and versions, and Arabic separators.
_SIGN: Final = r"$#@.:%+\-/*~\u066b\u066c"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_UNIT: Final = (
    r"(?:[kKMGT]i?B|[bB]ytes?|[mµnu]?s|secs?|seconds?|mins?|minutes?|hours?|days?|msecs?|milliseconds?|%|°?C)"
)
# Values that tell problems apart, at the beginning of a word. A message without a stack reports its program's counts
# and states: there a number after `status` or `error` is no code.
_CODES: Final = "[cC]ode|[eE]rrno|HTTP|[sS]ignal"
_CODES_OF_THROWN: Final = f"{_CODES}|[sS]tatus(?: [cC]ode)?|[eE]rror"
_TELLING: Final = (
    # Codes of SQL's standard and of Oracle.
    r"SQLSTATE\[?[ :=]?\[?[0-9A-Z]{5}\]?|ORA-\d{5}\b",
    # OpenSSL's reasons: the numbers and functions before differ by release.
    r"error:[0-9A-F]{8}:[^:]{1,60}:[^:]{0,60}:(?P<reason>[^:\n]{1,80})",
    # A word for a reason.
    r"(?:(?:[rR]eason|[cC]ause)(?: ?= ?|: )|error=)[A-Za-z][A-Za-z_]{2,40}(?![\w.:/@-])",
    # A network interface, by the kernel's name or systemd's predictable one (RFC 8343; systemd.net-naming-scheme).
    r"(?:(?:eth|wlan|wwan|bond|ppp|tun|tap|can|br)\d{1,3}"
    r"|(?:en|wl|ww|ib)(?:o\d{1,3}|s\d{1,3}|p\d{1,3}s\d{1,3}))(?![\w-])",
)
# A method of the platform in quotes, and a snake-case name as schemas have.
_TELLING_QUOTES: Final = (
    r"'(?:[\w.\[\]]{1,60} )?(?:javax?|kotlin|androidx?)\.[\w.$]{1,80}\([^()']{0,120}\)'"
    r"|[\"'`][a-z]+(?:_[a-z]+)+[\"'`]"
)
# Variable parts, in the order of matching, not inside of a word.
_VARYING: Final = (
    # A method of HTTP and its target, whose path without ids names the failed route (RFC 9110, 9.1).
    r"(?P<http>(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (?:https?://[^\s/\"'<>]{1,200})?/[^\s\"'<>()]{0,300})",
    r"""[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s"'<>()\]}]+""",
    r"(?<![.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+",
    r"(?<!\.)(?:[A-Za-z]:)?(?:[/\\]{1,3}[\w.@%+~$-]+){2,}[/\\]?",
    # A MAC address (IEEE 802); a time with its zone (RFC 2822, 3.3).
    r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b",
    r"\d\d:\d\d:\d\d (?!GET\b|PUT\b)(?:[A-Z]{2,4}T|UTC?|MSK)\b",
    rf"(?:{_DAY},? +)?(?:{_MONTH} +\d{{1,2}}|\d{{1,2}} {_MONTH})\b(?:,? +\d{{4}}\b)?",
    # Names with two dots, amounts, and whatever has a digit, from the beginning of a token.
    rf"(?<![{_SIGN}])(?:[a-z][a-z_-]*(?:\.[a-z][a-z_-]*){{2,}}(?!\w|[.:/@-]\w)"
    r"|[a-z]\w*(?:\.[\w$]+){2,}(?<!Exception)(?<!Error)(?<!Failure)(?!\w|[.:/@$-]\w)"
    rf"|<?\d[\d.,]{{0,30}}+ ?{_UNIT}(?!\w)|[\w{_SIGN}]*\d(?:[\w{_SIGN}]*[\w$#@%*])?)",
    r"[0-9a-f]{8,64}\b",
    r"(?<=[:=]) ?(?:true|false|null|nil|none|yes|no|True|False|None)\b",
    r"(?<=user )(?:(?<=\bfor user )[\w.-]+|(?<=\buser )[\w.-]{1,64}(?= (?:from|by|on|at|in|with|for|port|\[|\()))",
    r"'[^'\n]{0,200}'(?!\w)",
)
_QUOTES: Final = (
    r'"(?P<verb>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^"\n]{0,400}"',
    r'"[^"\n]{0,200}"',
    r"`[^`\n]{0,200}[`']",
    r"«[^»\n]{0,200}»|“[^”\n]{0,200}”",
)


def _values(codes: str) -> re.Pattern[str]:
    # A short number after a word that announces a code.
    telling = "|".join([rf"(?:{codes})[ :=#]{{0,3}}-?\d{{1,4}}(?![\w.:/-])", *_TELLING])
    return re.compile(
        rf"(?P<quoted>{_TELLING_QUOTES})|(?<!\w)(?:(?P<telling>{telling})|{'|'.join(_VARYING)})"
        rf"|{'|'.join(_QUOTES)}"
    )


_LOGGED: Final = _values(_CODES)
_THROWN: Final = _values(_CODES_OF_THROWN)
_ASSIGNED: Final = re.compile(
    r"\b([A-Za-z_][\w.]{0,60})=(?!=)[^\s,;(){}\[\]]*(?:\{[^{}]{0,100}\}|\([^()]{0,100}\)|\[[^\[\]]{0,100}\])?"
)
_ORIGIN: Final = re.compile(r"\Ahttps?://[^/]*")
# A segment with a digit, but for a version.
_ID: Final = re.compile(r"(?<=/)(?!v\d{1,2}(?:/|\Z))[^/]*\d[^/]*")
# A message in JSON is read by its leaves, after the names that they have. (RFC 8259)
_JSON: Final = re.compile(r"\s*[\[{]\s*[\[{\"]")
_LEAF: Final = re.compile(r'"((?:[^"\\]|\\.){0,200})"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b')
_REPEATED: Final = re.compile(r"<\*>(?:[\s,.:;/|&+-]{0,8}<\*>)+")
# Telling values are characters for private use until all others are gone: no expression takes one for a letter.
_MARKS: Final = re.compile("[\ue000-\uf8ff]")
_FIRST_MARK: Final = 0xE000


@lru_cache(maxsize=4096)
def template(message: str) -> str:
    """The template of a message without a stack: its first two lines, with variable parts as `<*>`."""
    lines = (_leaves(message) or message)[:CHARACTERS].strip().split("\n", LINES)
    return _template(" ".join(lines[:LINES]), _LOGGED)


@lru_cache(maxsize=4096)
def headline(message: str) -> str:
    """The template of the first line: different messages of one site are different errors."""
    return _template((_leaves(message) or message.strip())[:CHARACTERS].partition("\n")[0].strip(), _THROWN)


def _leaves(message: str) -> str:
    """The names and leaves of a message in JSON; empty for any other."""
    if _JSON.match(message) is None:
        return ""
    return " ".join(
        [f"{found[1] or found[0]}{':' * bool(found[2])}" for found in _LEAF.finditer(message[:CHARACTERS])]
    )


def _template(text: str, values: re.Pattern[str]) -> str:
    kept: list[str] = []
    text = values.sub(_replacing(kept), text if text.isascii() else _MARKS.sub("", text))
    if "=" in text:
        text = _ASSIGNED.sub(r"\1=<*>", text)
    text = _REPEATED.sub("<*>", text)
    text = " ".join(text.split())[:_TEMPLATE_CHARACTERS].strip()
    return _MARKS.sub(lambda mark: kept[ord(mark[0]) - _FIRST_MARK], text) if kept else text


def _replacing(kept: list[str]) -> Callable[[re.Match[str]], str]:
    def replaced(found: re.Match[str]) -> str:
        match found.lastgroup:
            case None:
                return "<*>"
            case "http":
                verb, _, target = found[0].partition(" ")
                path = _ORIGIN.sub("", target).partition("?")[0].partition("#")[0]
                return f"{verb} {_ID.sub('<*>', path)}"
            case "verb":
                return f"<*> {found['verb']}"
        kept.append(f"error {found['reason']}" if found["reason"] else found[0])
        return chr(_FIRST_MARK + len(kept) - 1)

    return replaced
