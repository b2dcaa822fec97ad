"""A project's grouping rules: a form to edit, test and save them."""

from collections.abc import Mapping
from contextlib import suppress

from aiohttp import web
from msgspec import Struct

from control.project_edits import set_rules
from dashboard.api.rules import RuleView, Skipped, read_rules, skip_counts
from dashboard.auth.auth import read_form
from dashboard.dependencies import state_of
from dashboard.http.http_errors import HttpError
from dashboard.http.inputs import MAX_QUERY
from dashboard.http.responses import redirect
from dashboard.pages.render import page
from dashboard.pages.rule_form import RuleFields, fields_of, read_fields
from dashboard.projects import edit_project, project_of
from dashboard.rule_trial import RuleTest, TrialRequest, try_rules
from grouping import rule_checks
from grouping.variables import KNOWN
from schemas.errors import Detail
from schemas.projects import Project


class RulesPage(Struct, frozen=True, kw_only=True):
    """What the page shows besides the rules."""

    errors: list[Detail] = []
    tested: RuleTest | None = None
    saved: bool = False
    skipped: Mapping[str, Skipped] | None = {}


async def show(request: web.Request) -> web.Response:
    """The saved rules with their errors."""
    project = project_of(request)
    state, given = state_of(request), request.query
    errors = rule_checks.violations(project.grouping_rules)
    skipped = await skip_counts(state.dependencies.reader, project.number)
    # From an issue: a new rule for what is like its events, or for what was merged into it.
    new = RuleFields(
        name=given.get("name", "")[: rule_checks.MAX_NAME],
        match=given.get("match", "")[:MAX_QUERY],
        fingerprint=given.get("fingerprint", "")[: rule_checks.MAX_ELEMENT],
    )
    tested = None
    if new.name and new.match and not errors:
        with suppress(HttpError):
            rules = read_rules([_rule(fields) for fields in (*fields_of(project.grouping_rules), new)])
            tested = await try_rules(state, project, rules, TrialRequest())
    content = RulesPage(errors=errors, saved="saved" in given, skipped=skipped, tested=tested)
    return _page(request, project, fields_of(project.grouping_rules), content, new=new)


async def change(request: web.Request) -> web.Response:
    """Test or save the entered rules, or show errors beside them and change nothing."""
    state, project, form = state_of(request), project_of(request), await read_form(request)
    entered = read_fields(await request.post())
    try:
        rules = read_rules([_rule(fields) for fields in entered])
        if form.get("do") == "save":
            await edit_project(state, project, lambda old: set_rules(old, rules))
            return redirect(f"/projects/{project.id}/rules?saved=1")
        tested = await try_rules(state, project, rules, TrialRequest())
    except HttpError as error:
        if not error.details:
            raise
        return _page(request, project, entered, RulesPage(errors=error.details), status=400)
    return _page(request, project, entered, RulesPage(tested=tested))


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
    request: web.Request,
    project: Project,
    rules: list[RuleFields],
    content: RulesPage,
    status: int = 200,
    new: RuleFields | None = None,
) -> web.Response:
    return page(
        request,
        "rules.html",
        status,
        project=project,
        active="rules",
        rules=[*rules, new or RuleFields()],
        entered=len(rules),
        errors=_by_index(content.errors),
        tested=content.tested,
        saved=content.saved,
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
