"""A project's grouping rules: read, and replaced as a whole, since their order decides."""

from msgspec import Struct

from dashboard.api.operation import Call, Nothing, Operation
from dashboard.refusals import Refused, not_found
from schemas.errors import Detail, WireError
from schemas.projects import GroupingRule
from storage.project_edits import set_rules
from storage.query.errors import QueryError
from storage.query.parse import parse
from storage.query.tree import COUNTS, ISSUE_TIMES, And, Compare, Is, Not, Or, Query


class RuleView(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A rule: what matches `match` (query language) gets what else is set here.

    `fingerprint` may contain `{{ default }}`; `inApp` and `notInApp` mark frames whose file or function fits a pattern;
    `discard` drops the event. Rules apply in order; the first that sets a fingerprint decides it.
    """

    name: str
    match: str
    fingerprint: list[str] | None = None
    in_app: list[str] | None = None
    not_in_app: list[str] | None = None
    discard: bool = False
    enabled: bool = True


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of a project, in their order."""

    rules: list[RuleView]


class RuleState(RuleView, frozen=True, rename="camel", kw_only=True):
    """A rule as it stands; `error` says why it is not asked about any event."""

    error: str | None = None


class RuleStates(Struct, frozen=True):
    """All rules of a project, in their order, each with what is wrong with it."""

    rules: list[RuleState]


def faults(rules: list[GroupingRule]) -> list[Detail]:
    """What keeps a rule from ever working, by its place."""
    found = []
    for position, rule in enumerate(rules):
        try:
            query = parse(rule.match)
        except QueryError as error:
            found.append(Detail(f"rules[{position}].match", error.message))
            continue
        if _asks_of_issue(query):
            message = "a rule sees the event before it has an issue: is, events, users, firstSeen and lastSeen aren't known"
            found.append(Detail(f"rules[{position}].match", message))
        if not (rule.fingerprint or rule.in_app or rule.not_in_app or rule.discard):
            found.append(
                Detail(f"rules[{position}]", "sets nothing: give fingerprint, inApp, notInApp or discard")
            )
    return found


def _asks_of_issue(query: Query) -> bool:
    match query:
        case And() | Or():
            return any(_asks_of_issue(item) for item in query.items)
        case Not():
            return _asks_of_issue(query.item)
        case Is():
            return True
        case Compare():
            return query.key in {*ISSUE_TIMES, *COUNTS}
    return False


async def _get(call: Call[Nothing, Nothing]) -> RuleStates:
    return _view(call.project().grouping_rules)


def read_rules(given: list[RuleView]) -> list[GroupingRule]:
    """Rules as a project keeps them. Raises Refused, naming every one that can't ever work by its place."""
    rules = [
        GroupingRule(
            name=rule.name,
            match=rule.match,
            fingerprint=_tuple(rule.fingerprint),
            in_app=_tuple(rule.in_app),
            not_in_app=_tuple(rule.not_in_app),
            discard=rule.discard,
            enabled=rule.enabled,
        )
        for rule in given
    ]
    if wrong := faults(rules):
        raise Refused(WireError.VALIDATION_FAILED, wrong)
    return rules


async def _put(call: Call[Nothing, Rules]) -> RuleStates:
    rules = read_rules(call.body.rules)
    changed = await call.state.parts.projects.edit(call.project().number, lambda old: set_rules(old, rules))
    if changed is None:
        raise not_found("there is no such project")
    return _view(changed.grouping_rules)


def _tuple(items: list[str] | None) -> tuple[str, ...] | None:
    return tuple(items) if items else None


def _view(rules: tuple[GroupingRule, ...]) -> RuleStates:
    return RuleStates(
        [
            RuleState(
                name=rule.name,
                match=rule.match,
                fingerprint=list(rule.fingerprint) if rule.fingerprint else None,
                in_app=list(rule.in_app) if rule.in_app else None,
                not_in_app=list(rule.not_in_app) if rule.not_in_app else None,
                discard=rule.discard,
                enabled=rule.enabled,
                error="; ".join(fault.message for fault in faults([rule])) or None,
            )
            for rule in rules
        ]
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/projects/{project}/grouping-rules",
        summary="The grouping rules, in their order",
        handler=_get,
        answer=RuleStates,
    ),
    Operation(
        method="PUT",
        path="/projects/{project}/grouping-rules",
        summary="Replace the grouping rules; events that come from now on are grouped by them",
        handler=_put,
        body=Rules,
        answer=RuleStates,
    ),
)
