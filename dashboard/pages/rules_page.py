"""A project's grouping rules: a form to edit, test and save them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from dashboard.api.rules_api import Skipped, check_rules, skip_counts
from dashboard.auth.access import Role
from dashboard.auth.auth import IDENTITY, read_form
from dashboard.auth.authorize import require_issues
from dashboard.dependencies import changes_of, state_of
from dashboard.http.http_errors import HttpError
from dashboard.http.inputs import MAX_QUERY
from dashboard.http.responses import redirect
from dashboard.pages.render import page
from dashboard.pages.rule_form import read_rules
from dashboard.requested_project import edit_project, project_of
from dashboard.rule_trial import RuleTest, TrialRequest, try_rules
from grouping import rule_checks
from grouping.rules import fixed_fingerprint
from grouping.variables import KNOWN
from schemas.changes import is_issue
from schemas.errors import Detail
from schemas.ids import hex64
from schemas.projects import GroupingRule, Project

_EMPTY: Final = GroupingRule("", "")


class RulesPage(Struct, frozen=True, kw_only=True):
    """Content of the page next to the rules."""

    errors: list[Detail] = []
    tested: RuleTest | None = None
    saved: bool = False
    skipped: Mapping[str, Skipped] | None = {}
    into: str = ""


async def show_rules(request: web.Request) -> web.Response:
    """The saved rules with their errors."""
    project = project_of(request)
    state, given = state_of(request), request.query
    errors = rule_checks.violations(project.grouping_rules)
    skipped = await skip_counts(state.dependencies.reader, project.number)
    # From an issue: a new rule for events like its own, or for the issues merged into it.
    new = GroupingRule(
        given.get("name", "")[: rule_checks.MAX_NAME],
        given.get("match", "")[:MAX_QUERY],
        tuple(given.get("fingerprint", "")[: rule_checks.MAX_CHARACTERS].splitlines()),
    )
    into, tested = _issue(given.get("into", "")), None
    if new.name and new.match and not errors:
        with suppress(HttpError):
            rules = [*project.grouping_rules, new]
            check_rules(rules)
            tested = await try_rules(state, project, rules, TrialRequest(), _merged(project, rules, into))
    content = RulesPage(errors=errors, saved="saved" in given, skipped=skipped, tested=tested, into=into)
    return _page(request, project, project.grouping_rules, content, new=new)


async def change_rules(request: web.Request) -> web.Response:
    """Test or save the entered rules, or show errors next to them and change nothing."""
    state, project, form = state_of(request), project_of(request), await read_form(request)
    rules, into = read_rules(await request.post()), _issue(form.get("into", ""))
    try:
        check_rules(rules)
        merged = _merged(project, rules, into)
        if form.get("do") == "save":
            if merged:
                await require_issues(request, [into], Role.ADMIN)
                # First, so that the first event by the rule is in the issue already.
                names = [hex64(fingerprint) for fingerprint in merged]
                await changes_of(state).merge_fingerprints(into, names, by=request[IDENTITY].name)
            await edit_project(request, lambda old: replace(old, grouping_rules=tuple(rules)))
            return redirect(f"/projects/{project.id}/rules?saved=1")
        tested = await try_rules(state, project, rules, TrialRequest(), merged)
    except HttpError as error:
        if not error.details:
            raise
        return _page(request, project, rules, RulesPage(errors=error.details, into=into), status=400)
    return _page(request, project, rules, RulesPage(tested=tested, into=into))


def _issue(text: str) -> str:
    """The issue from which the page was opened; empty for none."""
    return text if is_issue(text) else ""


def _merged(project: Project, rules: Sequence[GroupingRule], into: str) -> dict[int, int]:
    """The fingerprints of new rules that are merged into an issue when they are saved, with the issue."""
    if not into:
        return {}
    known = {rule.name for rule in project.grouping_rules}
    found = [fixed_fingerprint(rule) for rule in rules if rule.name not in known]
    return {fingerprint: int(into, 16) for fingerprint in found if fingerprint is not None}


def _page(
    request: web.Request,
    project: Project,
    rules: Sequence[GroupingRule],
    content: RulesPage,
    status: int = 200,
    new: GroupingRule = _EMPTY,
) -> web.Response:
    return page(
        request,
        "rules.html",
        status,
        project=project,
        active="rules",
        rules=[*rules, new],
        entered=len(rules),
        errors=_by_index(content.errors),
        tested=content.tested,
        saved=content.saved,
        into=content.into,
        skipped=content.skipped,
        variables=KNOWN[1:],
        limits=rule_checks,
    )


def _by_index(details: list[Detail]) -> Mapping[int, list[str]]:
    """Messages by the index of their rule; -1 for messages about all rules."""
    messages: dict[int, list[str]] = {}
    for detail in details:
        index = detail.field.partition("[")[2].partition("]")[0]
        field = detail.field.rpartition("].")[2] if "]." in detail.field else ""
        message = f"{field}: {detail.message}" if field else detail.message
        messages.setdefault(int(index) if index.isdecimal() else -1, []).append(message)
    return messages
