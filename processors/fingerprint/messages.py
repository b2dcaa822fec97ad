"""The template of a message: what stays when the parts that vary from event to event are replaced."""

import re
from functools import lru_cache

# Two lines say what happened; more is detail. The bound keeps a hostile message as cheap as an honest one.
_LINES = 2
_CHARACTERS = 600
# What is left of a template when it is hashed.
_TEMPLATE_CHARACTERS = 300

_VARIABLE = re.compile(
    r"""
    (?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s"'<>()\]}]+)
  | (?P<mail>[\w.+-]{1,64}@[\w-]+\.[\w.-]+)
  | (?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)
  | (?P<path>(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.@%+~$-]+){2,}[/\\]?)
  | (?P<string>"[^"\n]{0,200}"|(?<!\w)'[^'\n]{0,200}'(?!\w)|`[^`\n]{0,200}`|«[^»\n]{0,200}»|“[^”\n]{0,200}”)
  | (?P<token>[\w$#@.:%+\-/*]*\d[\w$#@.:%+\-/*]*)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(r"\b([A-Za-z_][\w.]*)=(?!=)[^\s,;)\]}]+")
_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"(<\*>)(?:[\s,.:;/|&+-]*<\*>)+")


@lru_cache(maxsize=4096)
def template(message: str) -> str:
    """The message with everything that varies replaced by `<*>`; at most 300 characters of its first two lines."""
    head = message[:_CHARACTERS].strip()
    if not head:
        return ""
    head = " ".join(head.split("\n", _LINES)[:_LINES])
    head = _VARIABLE.sub("<*>", head)
    head = _VALUE.sub(r"\1=<*>", head)
    head = _REPEATED.sub("<*>", head)
    return _SPACE.sub(" ", head)[:_TEMPLATE_CHARACTERS].strip()
