"""The template of a message: what stays when the parts that vary from event to event are replaced."""

import re
from functools import lru_cache

LINES = 2
"""Two lines say what happened; more is detail."""
# The bound keeps a hostile message as cheap as an honest one.
_CHARACTERS = 600
# What is left of a template when it is hashed.
_TEMPLATE_CHARACTERS = 300

# A letter of a token: what identifiers, addresses, times and versions are written in.
_WORD = r"[\w$#@.:%+\-/*~]"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_UNIT = (
    r"(?:[kKMGT]i?B|[bB]ytes?|[mµnu]?s|secs?|seconds?|mins?|minutes?|hours?|days?|msecs?|milliseconds?|%|°?C)"
)
_VARIABLE = rf"""
    (?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{{1,20}}://[^\s"'<>()\]}}]+)
  | (?P<mail>(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+\.[\w.-]+)
  | (?P<path>(?<![\w.])(?:[A-Za-z]:)?(?:[/\\]{{1,2}}[\w.@%+~$-]+){{2,}}[/\\]?)
  | "(?P<verb>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[ ][^"\n]{{0,400}}"
  | (?P<string>"[^"\n]{{0,200}}"|(?<!\w)'[^'\n]{{0,200}}'(?!\w)|`[^`\n]{{0,200}}[`']|«[^»\n]{{0,200}}»|“[^”\n]{{0,200}}”)
  | (?P<date>\b(?:{_DAY},?[ ]+)?(?:{_MONTH}[ ]+\d{{1,2}}|\d{{1,2}}[ ]{_MONTH})\b(?:,?[ ]+\d{{4}}\b)?)
  | (?P<dotted>(?<!{_WORD})[a-z][a-z_-]*(?:\.[a-z][a-z_-]*){{2,}}(?!\w|[.:/@-]\w))
  | (?P<class>(?<!{_WORD})[a-z]\w*(?:\.[\w$]+){{2,}}(?<!Exception)(?<!Error)(?<!Failure)(?!\w|[.:/@$-]\w))
  | (?P<amount>(?<!{_WORD})<?\d[\d.,]*[ ]?{_UNIT}(?!\w))
  | (?P<token>(?<!{_WORD}){_WORD}*\d(?:{_WORD}*[\w$#@%*])?)
  | (?P<hex>\b[0-9a-f]{{8,64}}\b)
  | (?<=[:=])[ ]?(?P<constant>true|false|null|nil|none|yes|no|True|False|None)\b
  | (?:(?<=\bfor[ ]user[ ])|(?<=\buser[ ])(?=[\w.-]{{1,64}}[ ](?:from|by|on|at|in|with|for|port|\[|\()))(?P<user>[\w.-]+)
"""
# A short number after such a word tells one fault from another; any other number counts or identifies.
_CODE = r"""
    (?P<code>\b(?:[sS]tatus(?:[ ][cC]ode)?|[cC]ode|[eE]rrno|[eE]rror|HTTP)[ :=]{0,2}\#?-?\d{1,4}(?![\w.:/-])) |
"""
_LOGGED = re.compile(_VARIABLE, re.VERBOSE)
_THROWN = re.compile(_CODE + _VARIABLE, re.VERBOSE)
_VALUE = re.compile(
    r"\b([A-Za-z_][\w.]{0,60})=(?!=)[^\s,;(){}\[\]]*(?:\{[^{}]{0,100}\}|\([^()]{0,100}\)|\[[^\[\]]{0,100}\])?"
)
_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"<\*>(?:[\s,.:;/|&+-]{0,8}<\*>)+")


@lru_cache(maxsize=4096)
def template(message: str) -> str:
    """A message without a stack: everything that varies is replaced by `<*>`, in its first two lines."""
    head = " ".join(message[:_CHARACTERS].strip().split("\n", LINES)[:LINES])
    return _tidy(_LOGGED.sub(_placeholder, head))


@lru_cache(maxsize=4096)
def headline(message: str) -> str:
    """The same of the first line alone, error codes kept: what a place throws in different words are different faults."""
    head = message[:_CHARACTERS].strip().partition("\n")[0]
    return _tidy(_THROWN.sub(_placeholder, head))


def _tidy(text: str) -> str:
    text = _VALUE.sub(r"\1=<*>", text)
    text = _REPEATED.sub("<*>", text)
    return _SPACE.sub(" ", text)[:_TEMPLATE_CHARACTERS].strip()


def _placeholder(found: re.Match[str]) -> str:
    if found.lastgroup == "code":
        return found[0]
    return f"<*> {found['verb']}" if found.lastgroup == "verb" else "<*>"
