"""An issue and one of its events; with a query, the events that match it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Raw

from dashboard.auth.auth import IDENTITY
from dashboard.dependencies import State, dashboard_address, state_of
from dashboard.http.http_errors import not_found
from dashboard.http.inputs import read_event, read_issue
from dashboard.pages.list_parameters import read_parameters, syntax_problem
from dashboard.pages.render import page
from dashboard.person_query import with_person
from dashboard.requested_project import find_project
from dashboard.rule_trial import catches_only
from dashboard.time_ranges import life_range
from dashboard.view.activity import LEFT_OUT, describe, marks_of, resolved_after
from dashboard.view.change_notice import ChangeNotice, change_notice, ignored
from dashboard.view.charts import events_chart
from dashboard.view.copies import as_markdown, as_sql
from dashboard.view.event_sections import EventSections, read
from dashboard.view.filters import field_query, tag_query
from dashboard.view.merge_rule import offered_rule
from dashboard.view.release_marks import newest_like, release_marks, suggested
from dashboard.view.source_links import frame_link
from dashboard.view.why_grouped import why_grouped
from schemas.ids import hex64
from schemas.json_values import decode_any
from schemas.projects import Project
from schemas.read_api import (
    NO_SOURCE,
    ActivityRow,
    EventDetail,
    Issue,
    IssuePart,
    Release,
    Series,
)
from schemas.times import DAY_MS, parse_iso
from storage.errors import DamagedPayload, NotFound
from storage.read.counts.count_calls import GetIssueWithStats
from storage.read.counts.tag_calls import CountIssueTags
from storage.read.events.event_detail import GetIssueEvent
from storage.read.issues.issue_calls import GetIssueRow, ListActivity, ListParts
from storage.read.issues.similar import ListSimilarIssues
from storage.read.reader import Reader

MAX_CHANGES = 20
MAX_SIMILAR = 5


async def show_issue(request: web.Request) -> web.Response:
    """The issue with its latest event, or the event in the path."""
    state = state_of(request)
    issue_id = read_issue(request.match_info["issue"])
    event_id = read_event(request.match_info.get("event", "latest"))
    parameters = read_parameters(request, state.dependencies.now_ms())
    problem = syntax_problem(parameters.query)
    query = parameters.query.strip() if problem is None else ""
    text = with_person(request, query)
    reader = state.dependencies.reader.for_page()
    (
        (issue, series, releases, assignees, merged, seen_in),
        (detail, is_damaged),
        facets,
        changes,
        similar,
    ) = await asyncio.gather(
        _issue_and_series(state, reader, issue_id, text),
        _event(state, reader, issue_id, event_id, text),
        reader.read(CountIssueTags(issue_id, text)),
        reader.read(ListActivity(issue_id, limit=MAX_CHANGES, without=LEFT_OUT)),
        reader.read(ListSimilarIssues(issue_id, limit=MAX_SIMILAR)),
    )
    project = find_project(state, issue.project_id)
    sent = _sections(detail)
    resolved = detail.resolved if detail is not None else None
    error = resolved.error if resolved is not None else None
    is_as_sent = request.query.get("stack") == "sent"
    sections = _sections(detail, error) if error is not None and not is_as_sent else sent
    source = (await state.resolver.sources(project.number, [issue])).get(issue.id, NO_SOURCE)
    notice = _notice(request, issue)
    was_merged = notice is not None and notice.undo is not None and notice.undo["change"] == "unmerge"
    merge_rule = await _merge_rule(state, project, issue, merged) if was_merged else ""
    return page(
        request,
        "issue.html",
        400 if problem is not None else 200,
        project=project,
        active="issues",
        issue=issue,
        detail=detail,
        event=sections,
        culprit=source.culprit or issue.culprit,
        problems=resolved.problems if resolved is not None else [],
        switch=_switch(query, is_as_sent=is_as_sent) if error is not None else "",
        is_as_sent=is_as_sent,
        why=why_grouped(detail.event, detail.grouping.rule, detail.fingerprint) if detail else [],
        markdown=as_markdown(issue, sections, f"{dashboard_address(request)}/issues/{issue.id}"),
        sql=as_sql(issue),
        rule=f"/projects/{issue.project_id}/rules?{urlencode({'match': _like(issue, sent)})}",
        facets=facets,
        query=query,
        keep=f"?{urlencode({'query': query})}" if query else "",
        problem=problem,
        matching=sum(point.events for point in series.series),
        figure=events_chart(
            series,
            [
                *marks_of(changes.activity),
                *release_marks(release for release in releases if release.release in seen_in),
            ],
        ),
        resolved_after=resolved_after(changes.activity, issue.id),
        opened=next((change.at for change in changes.activity if _is_opening(change, issue)), ""),
        # The page's head says when the issue was opened.
        changes=[describe(change, issue.id) for change in changes.activity if not _is_opening(change, issue)],
        frame_link=partial(frame_link, project.link_template, sections.release if sections else ""),
        narrowed=partial(_narrowed, issue.id, query),
        tag_query=tag_query,
        similar=similar.similar,
        merged=[part for part in merged if part.events != 0],
        merge_rule=merge_rule,
        ignored=ignored(issue.ignore_until),
        releases=suggested(releases),
        newest_release=newest_like(releases, issue.last_release),
        assignees=sorted({*assignees, issue.assignee or "", request[IDENTITY].name} - {""}),
        notice=notice,
        is_damaged=is_damaged or (detail is not None and detail.event is not None and sections is None),
        is_expired=parse_iso(issue.last_seen) < state.dependencies.now_ms() - project.retention_days * DAY_MS,
        is_discarded=set(issue.fingerprints) <= set(project.discarded),
    )


def _is_opening(change: ActivityRow, issue: Issue) -> bool:
    return change.kind == "created" and change.issue_id == issue.id


def _notice(request: web.Request, issue: Issue) -> ChangeNotice | None:
    """The notice of the last change; one that wasn't confirmed in time counts as done once the issue shows it."""
    done = request.query.get("done", "")
    change, was = done or request.query.get("pending", ""), request.query.get("was", "")
    return change_notice(change, was, issue, is_confirmed=bool(done))


async def _issue_and_series(
    state: State, reader: Reader, issue_id: str, query: str
) -> tuple[Issue, Series, Sequence[Release], Sequence[str], list[IssuePart], list[str]]:
    """The issue and its series, both of matching events over its life; releases, assignees and merged issues.

    The releases are the newest of its project, and last the names of those it was seen in. The assignees are
    the project's.
    """
    row = await reader.read(GetIssueRow(issue_id))
    span = life_range(row.first_seen, row.last_seen, state.dependencies.now_ms())
    counted = GetIssueWithStats(issue_id, query, start=span.start, end=span.end, interval=span.interval)
    (issue, series), releases, assignees, parts = await asyncio.gather(
        reader.read(counted),
        state.releases.of(reader, row.project_id),
        state.assignees.of(reader, row.project_id),
        _parts(reader, row.project_id, row.fingerprints[1:]),
    )
    return issue, series, releases, assignees, parts, row.releases


async def _parts(reader: Reader, project: int, fingerprints: Sequence[int]) -> list[IssuePart]:
    return await reader.read(ListParts(project, list(map(hex64, fingerprints)))) if fingerprints else []


def _like(issue: Issue, event: EventSections | None) -> str:
    """A query for events like those of an issue: their type, and the file in which the application failed."""
    frames = (
        frame for error in (event.errors if event else ()) for group in error.groups for frame in group.frames
    )
    file = next((frame.file for frame in frames if frame.in_app and frame.file), "")
    terms = [field_query("type", issue.error_type), field_query("file", file) if file else ""]
    return " ".join(filter(None, terms))


async def _merge_rule(state: State, project: Project, issue: Issue, parts: Sequence[IssuePart]) -> str:
    """The address at which the rule that would have merged the parts is tested.

    Empty without such a rule, and where it would catch events of other issues too.
    """
    own = IssuePart(issue.fingerprints[0], issue.error_type, issue.message, issue.culprit)
    rule = offered_rule([own, *parts])
    if rule is None or not await catches_only(state, project, rule, int(issue.id, 16)):
        return ""
    fingerprint = "\n".join(rule.fingerprint or ())
    given = {"name": rule.name, "match": rule.match, "fingerprint": fingerprint, "into": issue.id}
    return f"/projects/{issue.project_id}/rules?{urlencode(given)}#test"


def _narrowed(issue: str, query: str, term: str) -> str:
    """The address of the issue's events that match a further term of the query language."""
    both = query if term in query.split() else f"{query} {term}".strip()
    return f"/issues/{issue}?{urlencode({'query': both})}"


async def _event(
    state: State, reader: Reader, issue: str, event: str, query: str
) -> tuple[EventDetail | None, bool]:
    """The event and whether its payload is damaged.

    No event if none of the issue is stored yet, all have expired, or none matches.
    """
    try:
        return await state.resolver.with_source(await reader.read(GetIssueEvent(issue, event, query))), False
    except DamagedPayload as error:
        state.metrics.damaged_payloads.inc()
        return error.detail, True
    except NotFound:
        if event != "latest":
            raise not_found("this issue has no such event, or the event has expired") from None
        return None, False


def _switch(query: str, *, is_as_sent: bool) -> str:
    """The query string of the page with the other form of the stack."""
    given = ({"query": query} if query else {}) | ({} if is_as_sent else {"stack": "sent"})
    return f"?{urlencode(given)}"


def _sections(detail: EventDetail | None, error: Raw | None = None) -> EventSections | None:
    """The event's sections; None if it has no payload, or one that isn't an object of JSON.

    `error` replaces the event's.
    """
    if detail is None or detail.event is None:
        return None
    try:
        event = decode_any(bytes(detail.event))
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    return read(
        event | ({} if error is None else {"error": decode_any(bytes(error))}), detail.sdk, detail.time
    )
