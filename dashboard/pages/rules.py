"""A project's grouping rules: written in a form, tested on past events, saved."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from msgspec import Struct

from control.project_edits import set_rules
from dashboard.api.operation import find_project
from dashboard.api.rules import RuleView, Skipped, read_rules, skips
from dashboard.auth.auth import form
from dashboard.dependencies import state_of
from dashboard.http.errors import HttpError, not_found
from dashboard.http.wire import redirect
from dashboard.pages.render import page
from dashboard.pages.rule_form import RuleFields, read_fields, shown
from dashboard.rule_trial import RuleTest, TrialRequest, try_rules
from grouping import rule_checks
from grouping.variables import KNOWN
from schemas.errors import Detail
from schemas.projects import GroupingRule, Project

BLANK: Final = 1


class RulesPage(Struct, frozen=True, kw_only=True):
    """What the page says beside the rules."""

    wrong: list[Detail] = []
    tested: RuleTest | None = None
    saved: bool = False
    skipped: Mapping[str, Skipped] | None = {}


async def show(request: web.Request) -> web.Response:
    """The rules as they stand, each with what is wrong with it."""
    project = find_project(state_of(request), request.match_info["project"])
    wrong = rule_checks.violations(project.grouping_rules)
    skipped = await skips(state_of(request).parts.reader, project.number)
    what = RulesPage(wrong=wrong, saved="saved" in request.query, skipped=skipped)
    return _page(request, project, shown(project.grouping_rules), what)


async def change(request: web.Request) -> web.Response:
    """Test or save what was written; what is wrong is said beside its rule, and nothing is changed."""
    state = state_of(request)
    project, fields = find_project(state, request.match_info["project"]), await form(request)
    written = read_fields(await request.post())
    try:
        rules = read_rules([_rule(one) for one in written])
        if fields.get("do") == "save":
            await _save(request, project, rules)
            return redirect(f"/projects/{project.id}/rules?saved=1")
        tested = await try_rules(state, project, rules, TrialRequest())
    except HttpError as error:
        if not error.details:
            raise
        return _page(request, project, written, RulesPage(wrong=error.details), status=400)
    return _page(request, project, written, RulesPage(tested=tested))


async def _save(request: web.Request, project: Project, rules: list[GroupingRule]) -> None:
    edited = await state_of(request).parts.projects.edit(project.number, lambda old: set_rules(old, rules))
    if edited is None:
        raise not_found("there is no such project")


def _rule(fields: RuleFields) -> RuleView:
    return RuleView(
        name=fields.name,
        match=fields.match,
        fingerprint=fields.fingerprint.splitlines() or None,
        in_app=fields.in_app.split() or None,
        not_in_app=fields.not_in_app.split() or None,
        discard=fields.discard,
        enabled=fields.enabled,
    )


def _page(
    request: web.Request, project: Project, rules: list[RuleFields], what: RulesPage, status: int = 200
) -> web.Response:
    return page(
        request,
        "rules.html",
        status,
        project=project,
        active="rules",
        rules=[*rules, *[RuleFields() for _ in range(BLANK)]],
        written=len(rules),
        wrong=_by_place(what.wrong),
        tested=what.tested,
        saved=what.saved,
        skipped=what.skipped,
        variables=KNOWN[1:],
        limits=rule_checks,
    )


def _by_place(details: list[Detail]) -> Mapping[int, list[str]]:
    """Sentences by the place of their rule; -1 for what is about all of them."""
    found: dict[int, list[str]] = {}
    for detail in details:
        place = detail.field.partition("[")[2].partition("]")[0]
        field = detail.field.rpartition("].")[2] if "]." in detail.field else ""
        words = f"{field}: {detail.message}" if field else detail.message
        found.setdefault(int(place) if place.isdecimal() else -1, []).append(words)
    return found
