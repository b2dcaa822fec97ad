"""The worked examples of `docs/grouping-examples.md`, made from the shipped events: `python -m bench.grouping_page [--check]`."""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from bench.grouping import SAMPLES, measure, read_lines
from bench.grouping_scores import Label
from grouping.fingerprint import CURRENT_VERSION, Fingerprint

PAGE = Path(__file__).parent.parent / "docs" / "grouping-examples.md"
BEGIN = "<!-- examples: made by `python -m bench.grouping_page` -->"
END = "<!-- end of examples -->"
_EVENTS_SHOWN = 4
_FRAMES_SHOWN = 3
_TEXT_SHOWN = 96


class Case(NamedTuple):
    """Problems of one project, and what there is to say about their grouping."""

    title: str
    project: str
    problems: tuple[str, ...]
    why: str


CASES = (
    Case(
        "One fault in four browsers",
        "storefront-sym",
        ("exec:storefront-sym:couponNoCode",),
        "Every engine has its own sentence for reading a property of nothing. All become `null.startsWith`, "
        "so the place and the fault are the same, whatever the browser and its version.",
    ),
    Case(
        "Endless recursion",
        "storefront-sym",
        ("exec:storefront-sym:currencyLoop",),
        "Engines disagree on the class (`RangeError`, `InternalError`), on the sentence and on how many frames they show. "
        "The fault is `stack overflow`, and one frame is enough.",
    ),
    Case(
        "Numbers in the message",
        "api-orders-sym",
        ("exec:api-orders-sym:orderNotFound",),
        "The order's number is replaced by `<*>`. Lines move with each release and don't count; neither does how far up "
        "the asynchronous callers are shown.",
    ),
    Case(
        "Two problems inside the same wrapper",
        "storefront-sym",
        ("exec:storefront-sym:orderWrapped500", "exec:storefront-sym:orderWrappedBadJson"),
        "Both are caught and thrown again as the same `CartError` from the same line, which a grouping by the stack merges; the id in "
        "the message makes a grouping by message split them all. The root cause decides: its type and place, "
        "under the type and place of the wrapper.",
    ),
    Case(
        "Minified builds",
        "storefront-min",
        ("exec:storefront-min:couponExpired",),
        "A build renames functions and files at each release. Names of functions are ignored, the hash is cut from the name of "
        "the file, and the template of the message tells the fault.",
    ),
    Case(
        "One bundle on iOS and on Android",
        "chat-min",
        ("exec:chat-min:typingNullUser",),
        "JavaScriptCore and Hermes run the same program under different bundle names, and Hermes calls a compiled method "
        "`value`. Bundles are one file, the fault is neutral, names don't count.",
    ),
    Case(
        "A sentence that says nothing",
        "chat-sym",
        ("exec:chat-sym:badgeNumber", "exec:chat-sym:notifyBadHandler"),
        "Hermes only says `undefined is not a function`, which a grouping by message merges for the whole app. The place keeps "
        "them apart, and meets the other engines, which say what was called. One event stays alone: JavaScriptCore leaves out a "
        "function that ends in a call, here the one that names the place of an anonymous callback.",
    ),
    Case(
        "Lambdas and inner classes of the JVM",
        "harbour-ferry",
        ("hand:harbour-ferry:ticket null", "hand:harbour-ferry:lambda"),
        "Compilers number lambdas and anonymous classes in the order of the source: `lambda$load$0` becomes `load`, `TicketList$1` "
        "becomes `TicketList`. Frames of Android and of well-known libraries never decide while there is one of the app.",
    ),
    Case(
        "A native crash",
        "lantern-camera",
        ("hand:lantern-camera:exposure", "hand:lantern-camera:white balance"),
        "Arguments, template arguments and what compilers append (`.cold.1`, `$VARIANT$mp`) are cut off; signals of a bad access are "
        "one. A grouping by message splits the first problem by its addresses and merges part of it with the second.",
    ),
    Case(
        "A message in the user's language",
        "lantern-camera",
        ("hand:lantern-camera:roll decode",),
        "With a place of the app in the stack only JavaScript errors are told apart by their message: here it counts in no language.",
    ),
)


@click.command()
@click.option("--check", is_flag=True, help="Fail when the page isn't what would be made.")
def command(check: bool) -> None:
    """Renew the examples of the page."""
    text = PAGE.read_text(encoding="utf-8")
    renewed = with_examples(text)
    if check:
        sys.exit(0 if renewed == text else f"{PAGE.name} is out of date: python -m bench.grouping_page")
    PAGE.write_text(renewed, encoding="utf-8")


def with_examples(text: str) -> str:
    """The page with its examples regenerated."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{examples()}\n{END}{tail}"


def examples() -> str:
    """All cases as Markdown."""
    return "\n".join([_section(number, case) for number, case in enumerate(CASES, 1)])


def counts(case: Case) -> dict[str, int]:
    """The number of issues that each way of grouping gives a case's events."""
    events, fingerprints = _shipped()
    ids = _ids(case.project, case.problems)
    return {
        "problems": len(case.problems),
        "events": len(ids),
        "message": len({_by_message(events[one]) for one in ids}),
        "stack": len({_by_stack(events[one]) for one in ids}),
        "here": len({fingerprints[one].hash for one in ids}),
    }


def _section(number: int, case: Case) -> str:
    count = counts(case)
    lines = [
        f"### {number}. {case.title}",
        "",
        case.why,
        "",
        f"{count['events']} events of {_many(count['problems'], 'problem')}: by type and message {_many(count['message'], 'issue')}, "
        f"by the whole stack {_many(count['stack'], 'issue')}, here **{_many(count['here'], 'issue')}**.",
        "",
        "```text",
    ]
    for problem in case.problems:
        lines += _problem(case.project, problem)
    return "\n".join([*lines, "```", ""])


def _problem(project: str, problem: str) -> list[str]:
    """The first different events of a problem, and the parts of the issue that most of them share."""
    events, fingerprints = _shipped()
    ids = _ids(project, (problem,))
    lines = []
    different = {(_by_message(events[one]), _by_stack(events[one])): one for one in reversed(ids)}
    for one in sorted(different.values(), key=ids.index)[:_EVENTS_SHOWN]:
        lines += _error_lines(events[one]["error"])
    prints = [fingerprints[one] for one in ids]
    usual = max(prints, key=lambda one: (prints.count(one), one.hash))
    return [*lines, *[f"  = {part}" for part in usual.parts], ""]


def _error_lines(error: dict[str, Any]) -> list[str]:
    lines = [_cut(f"{error['type']}: {error['message'].partition(chr(10))[0]}")]
    frames = [
        f"{frame.get('function') or '?'} {_base(frame['file'])}:{frame['line']}"
        for frame in error["stack"][:_FRAMES_SHOWN]
    ]
    if frames:
        lines.append("    at " + _cut(", ".join(frames)))
    if error.get("cause"):
        lines += [f"  {line}" for line in _error_lines(error["cause"])]
    return lines


def _base(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + "…"


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _by_message(event: dict[str, Any]) -> str:
    return f"{event['error']['type']}: {event['error']['message']}"


def _by_stack(event: dict[str, Any]) -> str:
    stack = event["error"]["stack"]
    return json.dumps(
        [event["error"]["type"], [(frame.get("function"), frame["file"], frame["line"]) for frame in stack]]
    )


def _ids(project: str, problems: Sequence[str]) -> list[str]:
    return sorted(label.id for label in _labels() if label.project == project and label.group in problems)


@cache
def _labels() -> tuple[Label, ...]:
    decode = msgspec.json.Decoder(Label).decode
    return tuple(
        [decode(line) for path in sorted(SAMPLES.glob("*.labels.jsonl*")) for line in read_lines(path)]
    )


@cache
def _shipped() -> tuple[dict[str, Any], dict[str, Fingerprint]]:
    lines = [line for path in sorted(SAMPLES.glob("*.events.jsonl*")) for line in read_lines(path)]
    fingerprints, _ = measure(lines, CURRENT_VERSION)
    return {event["id"]: event for event in map(json.loads, lines)}, fingerprints


if __name__ == "__main__":
    command()
