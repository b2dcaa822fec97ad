"""Source lines around a frame, without the secrets and the persons that somebody wrote into them."""

import re
from typing import Final

from svc.limits import SOURCE_LINE_CHARS
from svc.plain import clip

MASK: Final = "***"
_TOKEN: Final = re.compile(r"\b[sp]k_[0-9A-Za-z_-]{8,}|\bsvc_[ps]k_\w+")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMED: Final = re.compile(
    r"(?i)((?:token|key|password|passwd|pwd|secret|email|phone|username|(?:google|apple|meta)_?sub)[\"']?\]?\s*[:=]\s*[a-z]{0,2})"
    r"([\"'])(?:\\.|(?!\2).)+\2"
)
_LINKED: Final = re.compile(r"(?i)link_?by")
_VALUE: Final = re.compile(r"(:\s*[a-zA-Z]{0,2})([\"'])(?:\\.|(?!\2).)+\2")


def shown(line: str) -> str:
    """The line as a frame shows it: values that go by the name of a secret, mail addresses and tokens are `***`.

    A line with `linkBy` in it shows no value at all: what `set_user` only hashes must not leave as source.
    """
    line = clip(line.rstrip("\r\n"), SOURCE_LINE_CHARS)
    if '"' in line or "'" in line:
        line = _NAMED.sub(rf"\1\2{MASK}\2", line)
        if _LINKED.search(line):
            line = _VALUE.sub(rf"\1\2{MASK}\2", line)
    if "@" in line:
        line = _MAIL.sub(MASK, line)
    return _TOKEN.sub(MASK, line) if "k_" in line else line
