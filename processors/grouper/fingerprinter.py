"""One event's grouping: decode it, ask the rules of its project, compute its fingerprint. Pure.

Rules are compiled once per change of a project. Events of one problem often repeat the same error byte for
byte, so results are cached by the error's bytes, by its stacks, and by the rules that were asked about it. A
cached result equals a computed one, and costs as many steps (`rule_budget`).
"""

import logging
from typing import Final, NamedTuple

from msgspec import Raw, Struct

from grouping.fingerprint import (
    Fingerprint,
    GroupingEvent,
    culprit,
    grouped,
    locate,
)
from grouping.fingerprint.in_app_rules import InAppRules, apply_in_app_rules
from grouping.fingerprint.stacks import ErrorLocation
from grouping.rules import (
    TOO_EXPENSIVE,
    UNTOUCHED,
    Answers,
    CompiledRule,
    CompiledRules,
    RuleOutcome,
    ask,
    compile_owners,
    compile_rules,
    merged,
    outcome_of,
)
from grouping.steps import EventSize, size_of
from processors.grouper.dedup_log import DISCARDED
from processors.grouper.event_outline import (
    EventOutline,
    decode_event,
    grouping_event,
    outline,
    stacks,
    without_stacks,
)
from processors.grouper.lru_cache import LruCache
from processors.grouper.rule_budget import RuleBudget
from query.event_view import EventView, from_json
from schemas.chunks import ChunkEvent, Grouping
from schemas.increments import Description, encode_description
from schemas.projects import (
    GROUPING_VERSION,
    GroupingRule,
    OwnerRule,
    Project,
    ProjectRegistry,
    RegistryRetention,
)

log = logging.getLogger(__name__)
MAX_TEXT: Final = 1000
"""Characters of a message that an issue keeps."""
MAX_NAME: Final = 200
"""Characters of a type, release, environment, culprit or grouping part that an issue keeps."""
MAX_PARTS: Final = 32
MAX_PARTS_BYTES: Final = 8000
"""Bytes of a grouping's parts that are published.

Clients and rules may give more; 300 groupings of a chunk must fit into a record."""
CACHE_BYTES: Final = 8 << 20
"""Bytes of each generation of each cache: groupings by error, error locations by stack, rule answers by error."""
ENTRY_BYTES: Final = 1000
"""Rough size of a cache entry without its key."""


class EventGrouping(Struct, frozen=True, gc=False):
    """An event's grouping.

    `fingerprint` is recorded: the event's, or the reason to drop it (`dedup_log.DROP_REASONS`).
    `description` is the encoded description of the issue by this event.
    """

    fingerprint: int
    grouping: Grouping
    description: Raw


class _ProjectRules(NamedTuple):
    """The rules and owners of a project, as given and compiled."""

    given: tuple[tuple[GroupingRule, ...], tuple[OwnerRule, ...]]
    rules: CompiledRules
    owners: CompiledRules

    @staticmethod
    def of(project: Project) -> "_ProjectRules":
        rules, owners = project.grouping_rules, project.owners
        return _ProjectRules((rules, owners), compile_rules(rules), compile_owners(owners))


class LazyView:
    """An event as the query language sees it, built at the first call."""

    __slots__ = ("_body", "_chunk_event", "_view")

    def __init__(self, body: bytes, chunk_event: ChunkEvent) -> None:
        self._body = body
        self._chunk_event = chunk_event
        self._view: EventView | None = None

    def __call__(self) -> EventView:
        """The view. Raises query.event_fields.Unreadable if it isn't a JSON object."""
        if self._view is None:
            self._view = from_json(self._body, self._chunk_event.sdk, self._chunk_event.received_ms)
        return self._view


class Fingerprinter:
    """Decodes and fingerprints events of all projects.

    `retention` is theirs: like a fingerprint, it is decided once for an event.
    """

    def __init__(self, projects: ProjectRegistry) -> None:
        self.retention = RegistryRetention(projects)
        self._projects = projects
        self._version = -1
        self._compiled: dict[int, _ProjectRules] = {}
        self._active: dict[int, CompiledRules] = {}
        self._discarded: dict[int, frozenset[int]] = {}
        self._owned: dict[int, _ProjectRules] = {}
        self._groupings: LruCache[tuple[str | None, bytes, bytes, RuleOutcome], EventGrouping] = LruCache(
            CACHE_BYTES
        )
        self._locations: LruCache[
            tuple[str | None, tuple[tuple[str | None, bytes], ...], InAppRules], ErrorLocation
        ] = LruCache(CACHE_BYTES)
        self._answers: LruCache[tuple[CompiledRules, str | None, bytes], tuple[Answers, EventSize]] = (
            LruCache(CACHE_BYTES)
        )

    def group(
        self, chunk_event: ChunkEvent, budget: RuleBudget | None = None
    ) -> tuple[EventOutline, EventGrouping]:
        """The decoded event and its grouping; `budget` is that of its record, without which it is alone in one.

        Raises msgspec.DecodeError for bytes that no edge wrote.
        """
        body = chunk_event.payload
        event = decode_event(body)
        if self._version != self._projects.version:
            self._compile()
        rules = self._active.get(chunk_event.project) if self._active else None
        outcome = (
            self._outcome(event, rules, body, chunk_event, budget or RuleBudget()) if rules else UNTOUCHED
        )
        result = self._by_error(event, outcome)
        if self._discarded and result.grouping.fingerprint in self._discarded.get(chunk_event.project, ()):
            result = EventGrouping(DISCARDED, result.grouping, result.description)
        return event, result

    def owner(self, chunk_event: ChunkEvent, event: EventOutline, budget: RuleBudget) -> str:
        """Whom the owner rules of its project assign an event to, or an empty text; asked after `group`."""
        owned = self._owned.get(chunk_event.project)
        if owned is None:
            return ""
        view = LazyView(chunk_event.payload, chunk_event)
        try:
            fitting = self._fitting(event, owned.owners, view, chunk_event, budget)
        except Exception:  # noqa: BLE001 - an event counts, whoever owns it
            budget.skip(chunk_event, "failed", "owner")
            return ""
        return owned.given[1][fitting[0].position].assignee if fitting else ""

    def _by_error(self, event: EventOutline, outcome: RuleOutcome) -> EventGrouping:
        """The grouping by platform, error and the event's own fingerprint, and by the effect of the rules."""
        key = (event.platform, bytes(event.error), bytes(event.fingerprint), outcome)
        result = self._groupings.get(key)
        if result is None:
            error_event, location = self._by_stacks(event, outcome.in_app_rules)
            found = grouped(error_event, outcome, location)
            result = _event_grouping(error_event, found, location)
            self._groupings.put(key, result, len(key[1]) + len(key[2]) + ENTRY_BYTES)
        return result

    def _by_stacks(
        self, event: EventOutline, in_app_rules: InAppRules
    ) -> tuple[GroupingEvent, ErrorLocation]:
        """The event for grouping and its location, which is cached by stack: messages differ more often than stacks."""
        error = outline(event)
        key = (event.platform, stacks(error), in_app_rules)
        location = self._locations.get(key)
        if location is not None:
            return without_stacks(event, error), location
        error_event = apply_in_app_rules(grouping_event(event), in_app_rules)
        location = locate(error_event)
        self._locations.put(key, location, sum(len(stack) for _, stack in key[1]) + ENTRY_BYTES)
        return error_event, location

    def _outcome(
        self,
        event: EventOutline,
        rules: CompiledRules,
        body: bytes,
        chunk_event: ChunkEvent,
        budget: RuleBudget,
    ) -> RuleOutcome:
        view = LazyView(body, chunk_event)
        return outcome_of(self._fitting(event, rules, view, chunk_event, budget), view)

    def _fitting(
        self,
        event: EventOutline,
        rules: CompiledRules,
        view: LazyView,
        chunk_event: ChunkEvent,
        budget: RuleBudget,
    ) -> tuple[CompiledRule, ...]:
        """The rules that match an event; those that it has no steps left for are counted as skipped."""
        project = chunk_event.project
        key = (rules, event.platform, bytes(event.error))
        answers, spent = self._answered(rules, key, view, budget.next_event(project), budget)
        budget.spend(project, spent)
        for rule, reason in answers.skipped:
            kind = "tooExpensive" if reason == TOO_EXPENSIVE else "failed"
            budget.skip(chunk_event, kind, rule.name[:MAX_NAME])
        return answers.fitting

    def _answered(
        self,
        rules: CompiledRules,
        key: tuple[CompiledRules, str | None, bytes],
        view: LazyView,
        left: int,
        budget: RuleBudget,
    ) -> tuple[Answers, int]:
        """The answers of the rules, and the steps spent: at most `left`.

        An equal error, `key`, costs once in a record.
        """
        known = self._answers.get(key)
        size = size_of(view()) if known is None else known[1]
        spent = rules.searches_of_event.steps(size)
        if not budget.is_paid(key):
            spent += rules.searches_of_error.steps(size)
        if spent > left:
            return rules.ask_within(left, size, view())
        budget.pay(key)
        if known is None:
            known = ask(rules.of_error, view()), size
            self._answers.put(key, known, len(key[2]) + ENTRY_BYTES)
        return merged(known[0], ask(rules.of_event, view())) if rules.of_event else known[0], spent

    def _compile(self) -> None:
        compiled: dict[int, _ProjectRules] = {}
        for project in self._projects:
            known = self._compiled.get(project.number)
            if known is None or known.given != (project.grouping_rules, project.owners):
                known = _ProjectRules.of(project)
                for name, error in (known.rules.errors | known.owners.errors).items():
                    log.warning(
                        "ignoring the invalid rule %r of project %s: %s",
                        name,
                        project.id,
                        error,
                        extra={"event": "rule_ignored"},
                    )
            compiled[project.number] = known
        self._compiled = compiled
        self._discarded = {
            project.number: frozenset(int(fingerprint, 16) for fingerprint in project.discarded)
            for project in self._projects
            if project.discarded
        }
        self._active = {number: known.rules for number, known in compiled.items() if known.rules}
        self._owned = {number: known for number, known in compiled.items() if known.owners}
        self._version = self._projects.version


def published_parts(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts as they are published: all, or the first that fit into MAX_PARTS_BYTES, and `…`."""
    if 5 * len(parts) + 4 * sum(map(len, parts)) <= MAX_PARTS_BYTES:
        return parts
    published: list[str] = []
    left = MAX_PARTS_BYTES
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        left -= len(encoded) + 5
        if left < 0:
            return (*published, "…")
        published.append(part)
    return parts


def _event_grouping(event: GroupingEvent, result: Fingerprint, location: ErrorLocation) -> EventGrouping:
    parts = published_parts(result.parts)
    description = Description(
        (event.error.type or "")[:MAX_NAME],
        (event.error.message or "")[:MAX_TEXT],
        culprit(event, location)[:MAX_NAME],
        GROUPING_VERSION,
        result.rule,
        tuple([part[:MAX_NAME] for part in parts[:MAX_PARTS]]),
    )
    grouping = Grouping(result.hash, GROUPING_VERSION, result.rule, parts)
    decided = DISCARDED if result.discard else result.hash
    return EventGrouping(decided, grouping, Raw(encode_description(description)))
