"""One event's grouping by the rules of its project, which are compiled once per change of the project."""

import logging

from msgspec.structs import replace

from grouping.fingerprint import Fingerprint, fingerprint
from grouping.rules import CompiledRules, compile_rules
from processors.forms import EventForm, decode_event
from schemas.chunks import ChunkEvent
from schemas.payload import decompress
from schemas.projects import GroupingRule, ProjectRegistry
from storage.query.view import from_json

log = logging.getLogger(__name__)


class Grouper:
    """Decodes and fingerprints events of all projects."""

    def __init__(self, projects: ProjectRegistry) -> None:
        self._projects = projects
        self._version = -1
        self._compiled: dict[int, tuple[tuple[GroupingRule, ...], CompiledRules]] = {}
        self._active: dict[int, CompiledRules] = {}
        self._discarded: dict[int, frozenset[int]] = {}

    def group(self, carried: ChunkEvent) -> tuple[EventForm, Fingerprint]:
        """The decoded event and its fingerprint.

        Raises BadPayload or msgspec.DecodeError for bytes that the edge never wrote.
        """
        body = decompress(carried.payload)
        event = decode_event(body)
        if self._version != self._projects.version:
            self._compile()
        rules = self._active.get(carried.project)
        if not rules:
            found = fingerprint(event)
        else:
            found = fingerprint(event, rules, view=from_json(body, carried.sdk, carried.received_ms))
        if found.hash in self._discarded.get(carried.project, ()):
            found = replace(found, discard=True)
        return event, found

    @property
    def failed_rules(self) -> int:
        """How many rules are not asked because they don't parse or have failed on an event."""
        return sum(len(rules.errors) for _, rules in self._compiled.values())

    def _compile(self) -> None:
        compiled = {}
        for project in self._projects:
            known = self._compiled.get(project.number)
            if known is None or known[0] != project.grouping_rules:
                known = (project.grouping_rules, compile_rules(project.grouping_rules))
                for name, error in known[1].errors.items():
                    log.warning("rule %r of project %s is not asked: %s", name, project.id, error)
            compiled[project.number] = known
        self._compiled = compiled
        self._discarded = {
            project.number: frozenset(int(one, 16) for one in project.discarded)
            for project in self._projects
            if project.discarded
        }
        self._active = {number: rules for number, (_, rules) in compiled.items() if rules}
        self._version = self._projects.version
