"""The template of a message: what stays when the parts that vary from event to event are replaced."""

import re
from functools import lru_cache

# Two lines say what happened; more is detail. The bound keeps a hostile message as cheap as an honest one.
_LINES = 2
_CHARACTERS = 600
# What is left of a template when it is hashed.
_TEMPLATE_CHARACTERS = 300

_WORD = r"[\w$#@.:%+\-/*~]"
_VARIABLE = re.compile(
    rf"""
    (?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{{1,20}}://[^\s"'<>()\]}}]+)
  | (?P<mail>(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+\.[\w.-]+)
  | (?P<path>(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.@%+~$-]+){{2,}}[/\\]?)
  | "(?P<verb>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[ ][^"\n]{{0,400}}"
  | (?P<string>"[^"\n]{{0,200}}"|(?<!\w)'[^'\n]{{0,200}}'(?!\w)|`[^`\n]{{0,200}}[`']|«[^»\n]{{0,200}}»|“[^”\n]{{0,200}}”)
  | (?P<dotted>(?<![\w.])[a-z][a-z_-]*(?:\.[a-z][a-z_-]*){{2,}}(?![\w.]))
  | (?P<token>(?<!{_WORD}){_WORD}*\d(?:{_WORD}*[\w$#@%*])?)
  | (?<=[:=])[ ]?(?P<constant>true|false|null|nil|none|yes|no|True|False|None)\b
  | (?<=\buser[ ])(?P<user>[\w.-]+)(?=[ ](?:from|on|at|in|with|for|port|\[))
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"\b([A-Za-z_][\w.]{0,60})=(?!=)[^\s,;(){}\[\]]*(?:\{[^{}]{0,100}\}|\([^()]{0,100}\)|\[[^\[\]]{0,100}\])?"
)
_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"<\*>(?:[\s,.:;/|&+-]{0,8}<\*>)+")


@lru_cache(maxsize=4096)
def template(message: str, lines: int = _LINES) -> str:
    """The message with everything that varies replaced by `<*>`; at most 300 characters of its first lines."""
    head = message[:_CHARACTERS].strip()
    if not head:
        return ""
    head = " ".join(head.split("\n", lines)[:lines])
    head = _VARIABLE.sub(_placeholder, head)
    head = _VALUE.sub(r"\1=<*>", head)
    head = _REPEATED.sub("<*>", head)
    return _SPACE.sub(" ", head)[:_TEMPLATE_CHARACTERS].strip()


def _placeholder(found: re.Match[str]) -> str:
    verb = found["verb"]
    return f"<*> {verb}" if verb else "<*>"
