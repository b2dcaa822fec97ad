"""Held-out grouping: each project's events, grouped without the rules that only this project needs.

The rules are written by hand, so a project can't be left out of their training. Instead each *entry* of their
tables is switched off once: an element of a set, tuple or mapping of texts, or an alternative of a pattern,
however deep. An entry without which fingerprints of one project change, and of no other, counts as the
project's own, be it documented or not. So the figures are pessimistic for tables. They don't see rules that
are statements, nor two entries of which either suffices. Of entries that hide each other in one half of a
list, some are counted for fewer events than they change: 5 of 528 that were also tried one by one.
"""

import importlib
import pkgutil
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Final, NamedTuple

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


class HoldOut:
    """Groups the events of each project without its own entries.

    `events` and `projects` are by event id, `group` gives the issue of an event by all rules that are on.
    `issues` are the held-out issues by event id, `own` the entries that a project alone needs.
    """

    def __init__(
        self,
        events: Mapping[str, GroupingEvent],
        projects: Mapping[str, str],
        group: Callable[[GroupingEvent], str],
        rules: Rules | None = None,
    ) -> None:
        self._events = events
        self._group = group
        self._rules = rules or Rules()
        self._plain = {each: group(event) for each, event in events.items()}
        self.own = defaultdict[str, list[Entry]](list)
        for table in self._rules.tables:
            for entry, ids in self._changed(table.entries, self._plain):
                first, *others = {projects[each] for each in ids}
                if not others:
                    self.own[first].append(entry)
        self.issues = dict(self._plain)
        for name, entries in self.own.items():
            with self._rules.without(entries):
                self.issues |= {
                    each: group(event) for each, event in events.items() if projects[each] == name
                }

    def _changed(self, entries: Sequence[Entry], ids: Iterable[str]) -> Iterator[tuple[Entry, list[str]]]:
        """Entries with the events that need them. Where none is needed, all are off together: a tenth of the time."""
        with self._rules.without(entries):
            ids = [each for each in ids if self._group(self._events[each]) != self._plain[each]]
        if ids and len(entries) > 1:
            middle = len(entries) // 2
            yield from self._changed(entries[:middle], ids)
            yield from self._changed(entries[middle:], ids)
        elif ids:
            yield entries[0], ids


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
