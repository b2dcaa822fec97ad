"""A JavaScript module that throws random errors, and what its events must be."""

import json
import random
from dataclasses import dataclass
from typing import Any, Final

FOLLOW = {"handled": "yes", "uncaught": "no", "rejected": "no"}
"""How an error gets to the library, and its tag `handled`."""
_WORDS: Final = (
    *("order", "läuft", "支付", "😀", "\ud83d", '"', "\\", "\u2028", "\0", "(", "…", ""),
    *("\n    at fake (fake.js:1:1)", "\nfake@fake.js:1:1"),
)
HEADER: Final = """\
class PaymentFailed extends Error {}
class Renamed extends Error { constructor(...args) { super(...args); this.name = "OrderLost"; } }
"""
_CLASSES: Final = {
    "Error": "Error", "TypeError": "TypeError", "RangeError": "RangeError", "PaymentFailed": "PaymentFailed",
    "Renamed": "OrderLost",
}  # fmt: skip
_VALUES: Final = [
    ("'text'", "String", "text"),
    ("42", "Number", "42"),
    ("null", "null", "null"),
    ("undefined", "undefined", "undefined"),
    ("({ code: 7 })", "Object", '{"code":7}'),
    ("[1, 'a']", "Array", '[1,"a"]'),
]


@dataclass
class Thrown:
    """One error: how it follows, its expected field `error` with stacks as [function, line, column], its tags.

    The stack None may be any.
    """

    follows: str
    error: dict[str, Any]
    has_more_causes: bool
    tags: dict[str, str]


class Module:
    """Writes a module of functions `t0`, `t1`… of which each throws a random error."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.lines = HEADER.splitlines()
        self.thrown: list[Thrown] = []

    def add(self) -> None:
        """Write one more function that throws, and those that it calls."""
        number, depth = len(self.thrown), self._chance.randint(0, 4)
        name = f"f{number}_{depth}"
        before = f"const {name} = () => {{ throw "
        error, text = self._error(len(before) + 1)
        self.lines.append(f"{before}{text}; }};")
        innermost, call, callers = len(self.lines), f"{name}()", []
        for caller in reversed(range(depth)):
            call, frame = self._caller(f"f{number}_{caller}", call)
            callers.append(frame)
        self.lines.append(f"export const t{number} = () => {call};")
        has_more_causes = _set_stacks(error, name, innermost, callers)
        tags = {f"tag{n}": self._chance.choice(["a", "ä😀", ""]) for n in range(self._chance.randint(0, 3))}
        self.thrown.append(Thrown(self._chance.choice([*FOLLOW]), error, has_more_causes, tags))

    def _caller(self, name: str, call: str) -> tuple[str, list[Any]]:
        """Write a function that makes the call; the call of that function, and its frame."""
        before, after, its_call, shown = self._chance.choice(
            [
                (f"function {name}() {{ return ", "; }", f"{name}()", name),
                (f"const {name} = () => ", ";", f"{name}()", name),
                (f"const o{name} = {{ {name}() {{ return ", "; } };", f"o{name}.{name}()", f"Object.{name}"),
                (
                    f"class C{name} {{ static {name}() {{ return ",
                    "; } }",
                    f"C{name}.{name}()",
                    f"C{name}.{name}",
                ),
                (f"class K{name} {{ constructor() {{ ", "; } }", f"new K{name}()", f"new K{name}"),
            ]
        )
        self.lines.append(before + call + after)
        return its_call, [shown, len(self.lines), len(before) + call.find(".") + 2]

    def _error(self, column: int, depth: int = 0) -> tuple[dict[str, Any], str]:
        """An error as expected, with its column for its stack, and the expression that makes it there."""
        kind = self._chance.random()
        if kind < 0.1:
            text, name, message = self._chance.choice(_VALUES[:2] if depth else _VALUES)
            return {"type": name, "message": message, "stack": None}, text
        if kind < 0.2:
            return self._aggregate(column)
        error, text = self._simple(column)
        if self._chance.random() < (0.5 if depth < 14 else 0):
            text = text[:-1] + ", { cause: "
            error["cause"], cause = self._error(column + len(text.encode("utf-16-le")) // 2, depth + 1)
            text += f"{cause} }})"
        return error, text

    def _simple(self, column: int) -> tuple[dict[str, Any], str]:
        name, kind = self._chance.choice([*_CLASSES.items()])
        message = " ".join(self._chance.choices(_WORDS, k=self._chance.randint(0, 6)))
        if self._chance.random() < 0.01:
            message = "x" * 20_000
        return {
            "type": kind,
            "message": _as_sent(message),
            "stack": column,
        }, f"new {name}({json.dumps(message)})"

    def _aggregate(self, column: int) -> tuple[dict[str, Any], str]:
        text, members = "new AggregateError([", []
        for _ in range(self._chance.randint(1, 3)):
            member, its_text = self._simple(column + len(text))
            members.append(member)
            text += its_text + ", "
        lines = [f"- {member['type']}: {_as_sent(member['message'], 500)}" for member in members]
        message = "\n".join(["several", *lines])
        error = {"type": "AggregateError", "message": _as_sent(message), "stack": column, "cause": members[0]}
        return error, text + '], "several")'


def _as_sent(message: str, limit: int = 16_384) -> str:
    message = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in message)
    return message if len(message) <= limit else message[: limit - 1] + "…"


def _set_stacks(error: dict[str, Any], name: str, line: int, callers: list[list[Any]]) -> bool:
    """Give the error and ten causes their stacks, which differ only in a column; whether it has more causes."""
    for _ in range(11):
        if error["stack"] is not None:
            error["stack"] = [[name, line, error["stack"]], *callers]
        last, error = error, error.get("cause", {})
        if not error:
            return False
    del last["cause"]
    return True
