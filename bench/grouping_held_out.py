"""Held-out grouping: each project's events, grouped without what the rules have learnt from that project alone.

The rules are written by hand, so a project can't be left out of their training. Instead each *entry* of their tables is switched off
once: an element of a set, tuple or dictionary of texts, or an alternative of a pattern, however deep. An entry without which
fingerprints of one project change, and of no other, counts as learnt from it, be it documented or not. So the figures are pessimistic
for tables; rules that are statements are not looked at.
"""

import importlib
import pkgutil
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Final, NamedTuple

from bench.grouping_scores import Label
from grouping import fingerprint
from grouping.fingerprint.event_view import GroupingEvent

_RULES: Final = tuple(
    importlib.import_module(f"{fingerprint.__name__}.{each.name}")
    for each in pkgutil.iter_modules(fingerprint.__path__)
)
# Takes the position of an element that is off: no event has it.
_NOTHING: Final = "\0"
# Before an alternative, keeps it from matching; its groups stay.
_NEVER: Final = "(?!)"
# An escape, a class of characters, the beginning and the end of a group, the next alternative.
_SYNTAX: Final = re.compile(
    r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|(?P<open>\((?:\?(?:P<\w+>|[a-z-]*:|<?[=!]))?)|(?P<close>\))|(?P<next>\|)",
    re.DOTALL,
)
_Key = tuple[str, int]
"""A text, and how many entries before it have the same."""


class Table:
    """A constant of one module, or of several that import it."""

    def __init__(self, homes: Sequence[tuple[ModuleType, str]]) -> None:
        module, name = homes[0]
        self.name = f"{module.__name__.rpartition('.')[2]}.{name}"
        self._homes = homes
        self._value = getattr(module, name)
        self.entries = [Entry(self, key) for key in dict.fromkeys(_keys(self._value))]

    def switch_off(self, keys: Iterable[_Key]) -> None:
        """Replace the constant by one without these entries."""
        self._set(_without(self._value, frozenset(keys)))

    def restore(self) -> None:
        """Switch everything on."""
        self._set(self._value)

    def _set(self, value: object) -> None:
        for module, name in self._homes:
            setattr(module, name, value)


class Entry(NamedTuple):
    """One entry of a table."""

    table: Table
    key: _Key

    def __str__(self) -> str:
        return f"{self.table.name}: {self.key[0]}"


class Rules:
    """The tables of modules, and their caches."""

    def __init__(self, modules: Iterable[ModuleType] = _RULES) -> None:
        homes = defaultdict[int, list[tuple[ModuleType, str]]](list)
        self._caches = []
        for module in modules:
            for name, value in vars(module).items():
                if hasattr(value, "cache_clear"):
                    self._caches.append(value)
                elif not name.startswith("__") and any(_keys(value)):
                    homes[id(value)].append((module, name))
        self.tables = [Table(each) for each in homes.values()]

    @contextmanager
    def without(self, entries: Iterable[Entry]) -> Iterator[None]:
        """Meanwhile these entries are off."""
        keys = defaultdict[Table, list[_Key]](list)
        for table, key in entries:
            keys[table].append(key)
        try:
            for table, off in keys.items():
                table.switch_off(off)
            self._clear()
            yield
        finally:
            for table in keys:
                table.restore()
            self._clear()

    def _clear(self) -> None:
        for cache in self._caches:
            cache.cache_clear()


class HeldOut(NamedTuple):
    """The held-out issue of each event by its id, and what was learnt from each project alone."""

    issues: dict[str, str]
    learnt: dict[str, list[Entry]]


def hold_out(
    labels: Sequence[Label],
    events: Mapping[str, GroupingEvent],
    group: Callable[[GroupingEvent], str],
    rules: Rules | None = None,
) -> HeldOut:
    """Group the labelled events of each project without what was learnt from it; `group` gives the issue of an event."""
    rules = rules or Rules()
    plain = {label.id: group(events[label.id]) for label in labels}
    project = {label.id: label.project for label in labels}

    def changed(entries: Sequence[Entry], ids: Iterable[str]) -> Iterator[tuple[Entry, list[str]]]:
        """Entries and the events that need them. Where none is needed all are off at once, which saves nine tenths of the time."""
        with rules.without(entries):
            ids = [each for each in ids if group(events[each]) != plain[each]]
        if ids and len(entries) > 1:
            middle = len(entries) // 2
            yield from changed(entries[:middle], ids)
            yield from changed(entries[middle:], ids)
        elif ids:
            yield entries[0], ids

    learnt = defaultdict[str, list[Entry]](list)
    for table in rules.tables:
        for entry, ids in changed(table.entries, plain):
            first, *others = {project[each] for each in ids}
            if not others:
                learnt[first].append(entry)
    issues = dict(plain)
    for name, entries in learnt.items():
        with rules.without(entries):
            issues |= {each: group(events[each]) for each in plain if project[each] == name}
    return HeldOut(issues, dict(learnt))


def _keys(value: object) -> Iterator[_Key]:
    """The entries of a table; none of any other value."""
    match value:
        case re.Pattern():
            seen = Counter[str]()
            for start, end in _alternatives(value.pattern):
                text = value.pattern[start:end]
                yield text, seen[text]
                seen[text] += 1
        case dict() if value and all(isinstance(each, re.Pattern) for each in value.values()):
            for pattern in value.values():
                yield from _keys(pattern)
        case dict() if not all(isinstance(each, str | int) for each in value.values()):
            return
        case dict() | frozenset() | tuple() if all(isinstance(each, str) for each in value):
            for text in value:
                yield text, 0


def _without(value: object, off: frozenset[_Key]) -> object:
    match value:
        case re.Pattern():
            text = value.pattern
            for key, (start, _) in reversed([*zip(_keys(value), _alternatives(text), strict=True)]):
                if key in off:
                    text = text[:start] + _NEVER + text[start:]
            return re.compile(text, value.flags)
        case dict() if isinstance(next(iter(value.values())), re.Pattern):
            return {name: _without(pattern, off) for name, pattern in value.items()}
        case dict():
            # A key of its own for each, so that all keep their positions.
            return {_NOTHING * n if (key, 0) in off else key: value[key] for n, key in enumerate(value, 1)}
        case frozenset() | tuple():
            return type(value)(_NOTHING if (text, 0) in off else text for text in value)
    raise TypeError(value)


def _alternatives(pattern: str) -> list[tuple[int, int]]:
    """Start and end of each alternative, in order; a pattern without any is one."""
    found: list[tuple[int, int]] = []
    groups = [[0]]
    for token in _SYNTAX.finditer(pattern):
        if token["open"]:
            groups.append([token.end()])
        elif token["next"]:
            groups[-1] += token.span()
        elif token["close"]:
            found += _pairs([*groups.pop(), token.start()], at_least=2)
    return sorted(found + _pairs([*groups[0], len(pattern)], at_least=1))


def _pairs(bounds: Sequence[int], at_least: int) -> list[tuple[int, int]]:
    pairs = [*zip(bounds[::2], bounds[1::2], strict=True)]
    return pairs if len(pairs) >= at_least else []
