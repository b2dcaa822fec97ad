"""The source names in mangled symbols: of C++ (Itanium ABI), Rust (both schemes) and Swift. Pure.

Only names matter for grouping, so types and arguments are skipped, not decoded. Unreadable names stay as they are.
Sources: the Itanium C++ ABI, section 5.1; RFC 2603 of Rust; docs/ABI/Mangling.rst of Swift.
"""

import re
from typing import Final

_ITANIUM: Final = re.compile(r"_{1,3}Z(?=[NZL\d]|St)")
_RUST: Final = re.compile(r"__?R(?=[A-Z])")
_SWIFT: Final = re.compile(r"_?(?:\$s|\$S|_T0|\$e)(?=[\w$])")
# A `typeid` name: nested, or of the standard library, or a length.
_TYPEID: Final = re.compile(r"N(?:St)?(?=[1-9])|St(?=[1-9])|(?=[1-9]\d{0,2}[A-Za-z_])")
_TYPEID_STARTS: Final = frozenset("NS123456789")
_NAMES: Final = 8
_RUST_HASH: Final = re.compile(r"h[0-9a-f]{16}\Z")
_RUST_ESCAPES: Final = re.compile(r"\$(?:LT|GT|RF|BP|C|u[0-9a-f]{1,6})\$|\.\.")
# What tells equal names apart, and a reference to an earlier place.
_RUST_NUMBER: Final = re.compile(r"[sB][0-9a-zA-Z]{0,11}_")
_SUBSTITUTION: Final = re.compile(r"S(?:[0-9A-Z]{0,8}_|[tabsiod])")
_OPENING: Final = "NIXJLF"
_SWIFT_TYPES: Final = frozenset("CVOPE")
_ESCAPED: Final = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "C": ",", "..": "::"}
_ASCII: Final = 128
_LONGEST: Final = 300
_BOUNDED: Final = re.compile(r"(?:\D*+\d++){0,40}+\D*+", re.ASCII).match
"""A symbol up to its 41st number: a name, template argument or substitution has one, and real symbols have half."""


def demangled(symbol: str) -> str:
    """The qualified name in a mangled symbol, without arguments; any other text unchanged."""
    if symbol[:1] not in "_$":
        return symbol
    for start, names in ((_ITANIUM, _itanium), (_RUST, _rust), (_SWIFT, _swift)):
        found = start.match(symbol)
        if found is not None:
            bounded = _BOUNDED(symbol, found.end(), _LONGEST)
            return (bounded and names(bounded[0])) or symbol
    return symbol


def plain_name(text: str) -> str:
    """The source name of a `typeid` name: `Cart` for `4Cart`, `shop::Cart` for `N4shop4CartE`.

    Any other text is unchanged: the lengths must be those of names. (Itanium C++ ABI, 5.1 and 2.9.1)
    """
    start = _TYPEID.match(text) if text[:1] in _TYPEID_STARTS else None
    if start is None:
        return text
    names = ["std"] if "St" in start[0] else []
    position = start.end()
    while position < len(text) and text[position].isdecimal() and len(names) < _NAMES:
        name, end = _name(text, position)
        if end > len(text) or not name.isidentifier():
            return text
        names.append(name)
        position = end
    if start[0][:1] == "N":
        return "::".join(names) if text[position:] == "E" else text
    ends = position == len(text) or text[position : position + 2] == "::"
    return "::".join(names) + text[position:] if ends and len(names) == 1 + ("St" in start[0]) else text


def _itanium(text: str) -> str:
    """`N4shop4Cart5totalEv`: the names of the first nested name; of a local one the function around it."""
    text = text.lstrip("ZL")
    names: list[str] = []
    position = 1 if text.startswith("N") else 0
    nested = position == 1
    while position < len(text):
        character = text[position]
        if character.isdecimal():
            name, position = _name(text, position)
            names.append(name)
            if not nested:
                break
        elif character == "S" and (found := _SUBSTITUTION.match(text, position)):
            if found[0] == "St":
                names.append("std")
            position = found.end()
        elif character == "I":
            position = _after(text, position)
        elif character in "CD" and text[position + 1 : position + 2].isdecimal() and names:
            names.append(("~" if character == "D" else "") + names[-1])
            position += 2
        elif character == "E":
            break
        else:
            position += 1
    if len(names) > 1 and _RUST_HASH.match(names[-1]):
        names.pop()
    path = "::".join(name for name in names if name != "_GLOBAL__N_1")
    return _RUST_ESCAPES.sub(_unescaped, path.removeprefix("_") if "$" in path else path)


def _after(text: str, position: int) -> int:
    """The position after the list of template arguments that begins here."""
    depth = 0
    while position < len(text):
        character = text[position]
        if character.isdecimal():
            position = _name(text, position)[1]
            continue
        if character == "S" and (found := _SUBSTITUTION.match(text, position)):
            position = found.end()
            continue
        depth += (character in _OPENING) - (character == "E")
        position += 1
        if depth == 0:
            break
    return position


def _rust(text: str) -> str:
    """Names that follow their lengths; a closure's has the length 0."""
    names = []
    position = 0
    while position < len(text):
        if found := _RUST_NUMBER.match(text, position):
            position = found.end()
        elif text[position].isdecimal() and text[position] != "0":
            name, position = _name(text, position)
            # An underscore separates a name that begins with a digit or another.
            if name.startswith("_") and position < len(text):
                name, position = name[1:] + text[position], position + 1
            names.append(name)
        elif text[position] in "IE" and names:
            break
        else:
            position += 1
    return "::".join(names)


def _swift(text: str) -> str:
    """`4Shop4CartC5totalSdyF`: module, types and function.

    Words that occurred before are written as letters: a for the first, A for the last one.
    """
    names: list[str] = []
    words: list[str] = []
    position = 0
    while position < len(text):
        if not text[position].isdecimal():
            position += 1
            continue
        if text[position] != "0":
            name, position = _name(text, position)
        else:
            name, position = _substituted(text, position + 1, words)
        words.extend(re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}", name))
        names.append(name)
        # The module comes first, then types, then the function, and labels of its arguments follow.
        if len(names) > 1 and text[position : position + 1] not in _SWIFT_TYPES:
            break
    return ".".join(names)


def _substituted(text: str, position: int, words: list[str]) -> tuple[str, int]:
    """A name of earlier words, each a letter, the last one a capital; then nothing, `0`, or the rest of the name."""
    parts = []
    letter = ""
    while not letter.isupper() and text[position : position + 1].isalpha():
        letter = text[position]
        index = ord(letter.lower()[0]) - ord("a")
        parts.append(words[index] if index < len(words) else "")
        position += 1
    if text[position : position + 1] == "0":
        return "".join(parts), position + 1
    rest, position = _name(text, position) if text[position : position + 1].isdecimal() else ("", position)
    return "".join([*parts, rest]), position


def _name(text: str, position: int) -> tuple[str, int]:
    """The name whose length is at `position`, and the position after it."""
    end = position
    while end < len(text) and text[end].isdecimal():
        end += 1
    length = int(text[position:end][:4])
    return text[end : end + length], end + length


def _unescaped(found: re.Match[str]) -> str:
    code = found[0].strip("$")
    if code[0] == "u":
        number = int(code[1:], 16)
        return chr(number) if number < _ASCII else ""
    return _ESCAPED.get(code, "")
