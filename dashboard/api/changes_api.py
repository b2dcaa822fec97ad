"""Changes of issues, comments, and similar issues."""

from typing import Annotated

from msgspec import Meta, Struct

from control.issue_changes import set_discarded
from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.dependencies import changes_of
from schemas.changes import CommentData, Hexes, Merge, UnmergeData, Update
from schemas.errors import WireError
from schemas.read_api import Issue, SimilarIssues
from storage.read.issues.similar import ListSimilarIssues


class BulkUpdate(
    Update, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """The same change to many issues."""

    issues: Hexes


class ChangedIssues(Struct, frozen=True):
    """Issues after a change, each once."""

    issues: list[Issue]


class ChangeDone(Struct, frozen=True):
    """The change is made; there is nothing else to return."""


class DiscardData(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether new events of the issue are dropped or stored."""

    discard: bool = True


class SimilarQuery(Struct, frozen=True):
    """The number of issues."""

    limit: Annotated[int, Meta(ge=1, le=50, description="maximum number of issues")] = 10


@operation("PATCH", "/issues/{issue}", Role.MEMBER)
async def _update(call: Call[NoInput, Update]) -> Issue:
    """Resolve, ignore, reopen or assign an issue."""
    return await changes_of(call.state).update(call.issue(), call.body, by=call.by, key=call.key)


@operation("POST", "/projects/{project}/issues:bulk", Role.MEMBER)
async def _update_many(call: Call[NoInput, BulkUpdate]) -> ChangedIssues:
    """Apply the same change to many issues."""
    project, body = call.project(), call.body
    update = Update(**{name: getattr(body, name) for name in Update.__struct_fields__})
    await call.require_issues(body.issues)
    changes, key = changes_of(call.state), call.request_name(project.id)
    if key:
        # The project remembers the whole request: another list with the same key must not change any issue.
        await call.edit(lambda unchanged: unchanged)
    return ChangedIssues(await changes.update_many(project.number, body.issues, update, by=call.by, key=key))


@operation("POST", "/issues/{issue}/merge", Role.MEMBER, errors=(WireError.CONFLICT,))
async def _merge(call: Call[NoInput, Merge]) -> Issue:
    """Merge other issues into this one."""
    await call.require_issues(call.body.issues)
    return await changes_of(call.state).merge(call.issue(), call.body.issues, by=call.by, key=call.key)


@operation("POST", "/issues/{issue}/unmerge", Role.MEMBER)
async def _unmerge(call: Call[NoInput, UnmergeData]) -> Issue:
    """Split merged fingerprints off into separate issues."""
    changes = changes_of(call.state)
    return await changes.unmerge(call.issue(), call.body.fingerprints, by=call.by, key=call.key)


@operation("POST", "/issues/{issue}/comments", Role.MEMBER, status=201)
async def _comment(call: Call[NoInput, CommentData]) -> ChangeDone:
    """Comment on an issue."""
    await changes_of(call.state).comment(call.issue(), call.body.text, by=call.by, key=call.key)
    return ChangeDone()


@operation("POST", "/issues/{issue}/discard", Role.ADMIN)
async def _discard(call: Call[NoInput, DiscardData]) -> Issue:
    """Drop an issue's new events before they are stored, or store them again."""
    projects, changes = call.state.dependencies.projects, changes_of(call.state)
    (issue,) = await changes.find([call.issue()])
    request = call.request_name(issue.project_id)
    return await set_discarded(projects, changes, issue, call.body.discard, call.author, request)


@operation("GET", "/issues/{issue}/similar", Role.VIEWER)
async def _similar(call: Call[SimilarQuery, NoInput]) -> SimilarIssues:
    """Issues with the most similar grouping."""
    return await call.reader.read(ListSimilarIssues(call.issue(), limit=call.query.limit))


OPERATIONS = (_update, _update_many, _merge, _unmerge, _comment, _discard, _similar)
