"""What a project's events show of it: helpers, words of messages that vary, and values that tell. Pure.

Only what many events show is learnt. A *helper* is an own frame that many callers pass through with messages that have little in common:
its caller and the message tell its problems apart. A word *varies* where many messages, with all else alike, differ in it alone. A value *tells*
where messages of one template have a few names there, each of them often.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from grouping.fingerprint import GroupingEvent, Mechanism
from grouping.fingerprint.frames import Family, Role, Site
from grouping.fingerprint.learnt import MAX_SLOTS, SLOT, slot_values, slots_pattern, without
from grouping.fingerprint.mechanism import chain_of
from schemas.projects import LearntFact

CALLERS: Final = 8
UNLIKE_MESSAGES: Final = 8
"""Of a helper, with one type."""
VARIOUS: Final = 8
"""Values of a word that varies."""
TELLING: Final = 5
"""Values that tell, at most."""
EACH: Final = 8
"""Messages of each value that tells."""
MAX_FACTS: Final = 200
"""Of a project."""
_COUNTED: Final = 500
_FRAMES: Final = 30
_ALIKE: Final = 0.5
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z_]+\d?\Z")
_WORD: Final = re.compile(r"\w[\w'-]*")
# These say whether, not what.
_STATES: Final = frozenset({"true", "false", "yes", "no", "null", "none", "nil", "undefined", "on", "off"})


class SeenFrame(NamedTuple):
    """An error of a type at its own frame: the next own frame below, and the template of its message."""

    kind: str
    frame: str
    caller: str
    message: str


class SeenMessage(NamedTuple):
    """A message that counts: the other parts of its fingerprint, its template, and its text, if known."""

    others: tuple[str, ...]
    template: str
    text: str = ""


def message_of(parts: Sequence[str], text: str = "") -> SeenMessage | None:
    """The message of a fingerprint's parts; None where none counts, or two."""
    templates = [part for part in parts if part.startswith(("message ", "cause message "))]
    if len(templates) != 1:
        return None
    others = tuple(part for part in parts if part is not templates[0])
    return SeenMessage(others, templates[0].partition("message ")[2], text)


def seen_in(event: GroupingEvent, mechanism: Mechanism) -> tuple[SeenFrame | None, SeenMessage | None]:
    """What an event shows, by the mechanism that groups its project."""
    index, error_sites = location = mechanism.locate(event)
    _, parts = mechanism.decide(event, location)
    chain = chain_of(event.error)
    error = chain[-1] if index is None else chain[index]
    text = error.message or ""
    message = message_of(parts, text)
    if index is None or error_sites[index].role is not Role.APP or error_sites[index].minified:
        return None, message
    site = error_sites[index].sites[0]
    caller = "" if site.vague else _caller(event, index, site, mechanism)
    if not caller:
        return None, message
    reading = mechanism.reading
    template = (reading.headline if site.family is Family.JAVASCRIPT else reading.message)(text)
    return SeenFrame(error.type or "", site.text, caller, template), message


def _caller(event: GroupingEvent, index: int, site: Site, mechanism: Mechanism) -> str:
    """The next own frame below that says what it is; empty if there is none."""
    below = False
    for frame in (chain_of(event.error)[index].stack or ())[:_FRAMES]:
        found = mechanism.reading.frame(event.platform, frame)
        if found.role is Role.APP and found.text == site.text:
            below = True
        elif below and found.role is Role.APP and not found.vague:
            return found.text
    return ""


def helpers(seen: Iterable[SeenFrame]) -> list[LearntFact]:
    """The frames that many callers pass through with unlike messages."""
    callers: defaultdict[str, set[str]] = defaultdict(set)
    messages: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in seen:
        _add(callers[one.frame], one.caller)
        _add(messages[one.frame][one.kind], one.message)
    found = []
    for frame, by_type in sorted(messages.items()):
        if len(callers[frame]) >= CALLERS and any(_are_unlike(of_type) for of_type in by_type.values()):
            count = len(set().union(*by_type.values()))
            found.append(LearntFact("helper", frame, callers=len(callers[frame]), messages=count))
    return found


def _add(counted: set[str], name: str) -> None:
    if len(counted) < _COUNTED:
        counted.add(name)


def _are_unlike(messages: Iterable[str]) -> bool:
    """Whether enough of these messages have little in common with each other."""
    unlike: list[set[str]] = []
    for message in sorted(messages):
        words = set(_WORD.findall(message))
        if all(len(words & known) < _ALIKE * len(words | known) for known in unlike):
            unlike.append(words)
            if len(unlike) == UNLIKE_MESSAGES:
                return True
    return False


def varying(seen: Iterable[SeenMessage]) -> list[LearntFact]:
    """The words in which alone many messages differ, with all else alike."""
    by_others: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in seen:
        _add(by_others[one.others], one.template)
    found: dict[str, LearntFact] = {}
    for templates in by_others.values():
        if len(templates) < VARIOUS:
            continue
        values: defaultdict[tuple[int, tuple[str, ...]], set[str]] = defaultdict(set)
        for template in templates:
            words = template.split(" ")
            for at, word in enumerate(words):
                if word != SLOT:
                    values[at, without(words, at)].add(word)
        for (at, rest), varied in values.items():
            # What remains must say something.
            if len(varied) >= VARIOUS and sum(_WORD.search(word) is not None for word in rest) > 1:
                text = " ".join((*rest[:at], SLOT, *rest[at:]))
                found.setdefault(text, LearntFact("varies", text, at, messages=len(varied)))
    return [found[text] for text in sorted(found)]


def telling(seen: Iterable[SeenMessage]) -> list[LearntFact]:
    """The values that a few names, each often, take in messages of one template; one fact a template."""
    by_template: defaultdict[str, list[str]] = defaultdict(list)
    for one in seen:
        texts = by_template[one.template]
        if 1 <= one.template.count(SLOT) <= MAX_SLOTS and len(texts) < _COUNTED:
            texts.append(one.text)
    found = []
    for template, texts in sorted(by_template.items()):
        pattern = slots_pattern(template)
        all_values = [slot_values(pattern, text) for text in texts]
        if not all(all_values):
            continue
        for at in range(template.count(SLOT)):
            counts = Counter(values[at] for values in all_values)
            if _tell(counts):
                found.append(LearntFact("telling", template, at, tuple(sorted(counts)), messages=len(texts)))
                break
    return found


def _tell(counts: Counter[str]) -> bool:
    return 2 <= len(counts) <= TELLING and all(
        count >= EACH and _NAME.match(value) and value.lower() not in _STATES
        for value, count in counts.items()
    )


def added(known: Sequence[LearntFact], found: Iterable[LearntFact], now_ms: int) -> tuple[LearntFact, ...]:
    """The facts of a project with new ones; what a user overruled stays overruled."""
    names = {fact.name for fact in known}
    new = [replace(fact, learnt_at=now_ms) for fact in found if fact.name not in names]
    return (*known, *new[: max(0, MAX_FACTS - len(known))])
