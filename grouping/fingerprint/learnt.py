"""A version of the fingerprint with what was learnt of a project: helpers, words that vary, values that tell. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from grouping.fingerprint.event_view import GroupingFrame
from grouping.fingerprint.frames import Role, Site
from grouping.fingerprint.mechanism import Mechanism
from schemas.projects import LearntFact

SLOT: Final = "<*>"
"""Stands in a template for what varies."""
MAX_SLOTS: Final = 3
"""Of a template of which a value tells: bounds the cost of finding the values."""
_CHARACTERS: Final = 600
_LINES: Final = 2
_SPACE: Final = re.compile(r"\s+")


def with_learnt(mechanism: Mechanism, facts: Iterable[LearntFact]) -> Mechanism:
    """The version as it groups a project of which these facts were learnt."""
    used = [fact for fact in facts if not fact.overruled]
    if not used:
        return mechanism
    reading = mechanism.reading
    helpers = frozenset(fact.text for fact in used if fact.kind == "helper")
    slots = Slots(used)

    def frame(platform: str | None, sent: GroupingFrame) -> Site:
        site = reading.frame(platform, sent)
        is_helper = site.role is Role.APP and not site.vague and site.text in helpers
        return site._replace(vague=True) if is_helper else site

    changed = reading._replace(
        frame=frame if helpers else reading.frame,
        message=slots.reading(reading.message),
        headline=slots.reading(reading.headline),
    )
    return mechanism._replace(reading=changed, key=f"{mechanism.key} {hash(tuple(used))}")


class Slots:
    """The learnt words and values of messages."""

    def __init__(self, facts: Iterable[LearntFact]) -> None:
        self._telling: dict[str, list[tuple[LearntFact, re.Pattern[str]]]] = {}
        self._varying: dict[tuple[int, int], dict[tuple[str, ...], str]] = {}
        for fact in facts:
            if fact.kind == "telling":
                self._telling.setdefault(fact.text, []).append((fact, slots_pattern(fact.text)))
            elif fact.kind == "varies":
                words = fact.text.split(" ")
                known = self._varying.setdefault((len(words), fact.at), {})
                known[without(words, fact.at)] = fact.text

    def reading(self, template: Callable[[str], str]) -> Callable[[str], str]:
        """What makes a template of a message, with these facts."""
        if not (self._telling or self._varying):
            return template
        return lambda message: self._with_facts(template(message), message)

    def varied(self, template: str) -> str:
        """A template without the words that vary."""
        words = template.split(" ")
        for (count, at), known in self._varying.items():
            if count == len(words) and (found := known.get(without(words, at))):
                return found
        return template

    def _with_facts(self, template: str, message: str) -> str:
        for fact, pattern in self._telling.get(template, ()):
            values = slot_values(pattern, message)
            if fact.at < len(values) and values[fact.at] in fact.values:
                before, after = _around(template, fact.at)
                return f"{before}{values[fact.at]}{after}"
        return self.varied(template)


def without(words: list[str], at: int) -> tuple[str, ...]:
    """All words but one."""
    return (*words[:at], *words[at + 1 :])


def slots_pattern(template: str) -> re.Pattern[str]:
    """Finds the values of the template's slots in a message, at most MAX_SLOTS of them."""
    pieces = [re.escape(piece) for piece in template.split(SLOT)[: MAX_SLOTS + 1]]
    return re.compile("(.{1,80}?)".join(pieces) + (r"\Z" if template.count(SLOT) <= MAX_SLOTS else ""))


def slot_values(pattern: re.Pattern[str], message: str) -> tuple[str, ...]:
    """The values of the slots in a message; none where they can't be found."""
    head = _SPACE.sub(" ", " ".join(message[:_CHARACTERS].strip().split("\n", _LINES)[:_LINES])).strip()
    found = pattern.match(head)
    return found.groups() if found else ()


def _around(template: str, slot: int) -> Iterator[str]:
    pieces = template.split(SLOT)
    yield SLOT.join(pieces[: slot + 1])
    yield SLOT.join(pieces[slot + 1 :])
