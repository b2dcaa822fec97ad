"""One event's grouping by the rules of its project, which are compiled once per change of the project."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Raw, Struct

from grouping.cost import MAX_STEPS
from grouping.fingerprint import Fingerprint, GroupingEvent, culprit, grouped, locate
from grouping.fingerprint.in_app_rules import InAppRules, apply_in_app_rules
from grouping.fingerprint.stacks import ErrorLocation
from grouping.rules import (
    NO_ANSWERS,
    TOO_DEAR,
    UNTOUCHED,
    Answers,
    CompiledRules,
    RuleOutcome,
    ask,
    compile_rules,
    merged,
    outcome_of,
)
from processors.grouper.event_view import (
    EventOutline,
    decode_event,
    grouping_event,
    outline,
    stacks,
    without_stacks,
)
from processors.grouper.lru_cache import LruCache
from processors.grouper.outcomes import MINUTE_MS, Skip
from query.event_view import EventView, from_json
from schemas.chunks import ChunkEvent, Grouping
from schemas.increments import Description, encode_description
from schemas.payload import decompress
from schemas.projects import GroupingRule, ProjectRegistry

log = logging.getLogger(__name__)

MAX_TEXT: Final = 1000
"""Characters of a message that an issue keeps."""
MAX_NAME: Final = 200
"""Characters of a type, release, environment, culprit or grouping part that an issue keeps."""
MAX_PARTS: Final = 32
REMEMBERED_BYTES: Final = 8 << 20
"""Bytes of errors whose grouping is remembered, of stacks whose places are, and of errors that rules were asked about; as
much again of older ones each."""
ENTRY_BYTES: Final = 1000
"""What is remembered beside the error itself, about."""


class Found(Struct, frozen=True, gc=False):
    """An event's grouping.

    `value` is the fingerprint as it is recorded (0: discarded by a rule), `description` what the event says of its issue.
    """

    value: int
    grouping: Grouping
    description: Raw


class Fingerprinter:
    """Decodes and fingerprints events of all projects."""

    def __init__(self, projects: ProjectRegistry) -> None:
        self._projects = projects
        self._version = -1
        self._compiled: dict[int, tuple[tuple[GroupingRule, ...], CompiledRules]] = {}
        self._active: dict[int, CompiledRules] = {}
        self._discarded: dict[int, frozenset[int]] = {}
        self._known: LruCache[tuple[str | None, bytes, bytes, RuleOutcome], Found] = LruCache(
            REMEMBERED_BYTES
        )
        self._locations: LruCache[
            tuple[str | None, tuple[tuple[str | None, bytes], ...], InAppRules], ErrorLocation
        ] = LruCache(REMEMBERED_BYTES)
        self._answers: LruCache[tuple[CompiledRules, str | None, bytes], Answers] = LruCache(REMEMBERED_BYTES)
        self._skipped: Counter[Skip] = Counter()

    def group(self, carried: ChunkEvent) -> tuple[EventOutline, Found]:
        """The decoded event and its grouping.

        Raises BadPayload or msgspec.DecodeError for bytes that the edge never wrote.
        """
        body = decompress(carried.payload)
        event = decode_event(body)
        if self._version != self._projects.version:
            self._compile()
        rules = self._active.get(carried.project) if self._active else None
        outcome = self._outcome(event, rules, body, carried) if rules else UNTOUCHED
        found = self._by_error(event, outcome)
        if self._discarded and found.grouping.fingerprint in self._discarded.get(carried.project, ()):
            found = Found(0, found.grouping, found.description)
        return event, found

    @property
    def failed_rules(self) -> int:
        """How many rules are not asked because they don't parse."""
        return sum(len(rules.errors) for _, rules in self._compiled.values())

    def pop_skipped(self) -> Mapping[Skip, int]:
        """About how many events each rule was not asked since this was last called."""
        skipped = self._skipped
        if skipped:
            self._skipped = Counter()
        return skipped

    def _by_error(self, event: EventOutline, outcome: RuleOutcome) -> Found:
        """But for what rules did nothing but these three decides."""
        key = (event.platform, bytes(event.error), bytes(event.fingerprint), outcome)
        found = self._known.get(key)
        if found is None:
            form, location = self._by_stacks(event, outcome.in_app_rules)
            found = _found(form, grouped(form, outcome, location=location), location)
            self._known.put(key, found, len(key[1]) + len(key[2]) + ENTRY_BYTES)
        return found

    def _by_stacks(
        self, event: EventOutline, in_app_rules: InAppRules
    ) -> tuple[GroupingEvent, ErrorLocation]:
        """Messages differ from event to event where the stacks are the same: these need not be looked at again."""
        error = outline(event)
        key = (event.platform, stacks(error), in_app_rules)
        location = self._locations.get(key)
        if location is not None:
            return without_stacks(event, error), location
        form = apply_in_app_rules(grouping_event(event), in_app_rules)
        location = locate(form)
        self._locations.put(key, location, sum(len(stack) for _, stack in key[1]) + ENTRY_BYTES)
        return form, location

    def _outcome(
        self, event: EventOutline, rules: CompiledRules, body: bytes, carried: ChunkEvent
    ) -> RuleOutcome:
        view = View(body, carried)
        if rules.weight * len(body) > MAX_STEPS:
            # Some of them may be too dear, which takes counting; of any other event they all can be asked.
            answers = rules.ask(view(), grouping_event(event))
        else:
            answers = self._of_error(event, rules, view)
            if rules.of_event:
                answers = merged(answers, ask(rules.of_event, view()))
        for rule, reason in answers.skipped:
            kind = "tooDear" if reason == TOO_DEAR else "failed"
            self._skipped[carried.project, carried.received_ms // MINUTE_MS, kind, rule.name[:MAX_NAME]] += 1
        return outcome_of(answers.fitting, view)

    def _of_error(self, event: EventOutline, rules: CompiledRules, view: "View") -> Answers:
        """What the rules say that depend on nothing but the error and the platform."""
        if not rules.of_error:
            return NO_ANSWERS
        key = (rules, event.platform, bytes(event.error))
        answers = self._answers.get(key)
        if answers is None:
            answers = ask(rules.of_error, view())
            self._answers.put(key, answers, len(key[2]) + ENTRY_BYTES)
        return answers

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


class View:
    """An event as the query language sees it, made once it is asked for."""

    __slots__ = ("_body", "_carried", "_view")

    def __init__(self, body: bytes, carried: ChunkEvent) -> None:
        self._body = body
        self._carried = carried
        self._view: EventView | None = None

    def __call__(self) -> EventView:
        """The view. Raises query.event_fields.Unreadable for what is no JSON object."""
        if self._view is None:
            self._view = from_json(self._body, self._carried.sdk, self._carried.received_ms)
        return self._view


def _found(form: GroupingEvent, found: Fingerprint, location: ErrorLocation) -> Found:
    description = Description(
        (form.error.type or "")[:MAX_NAME],
        (form.error.message or "")[:MAX_TEXT],
        culprit(form, location)[:MAX_NAME],
        found.version,
        found.rule,
        tuple([part[:MAX_NAME] for part in found.parts[:MAX_PARTS]]),
    )
    grouping = Grouping(found.hash or 1, found.version, found.rule, found.parts)
    return Found(0 if found.discard else found.hash or 1, grouping, Raw(encode_description(description)))
