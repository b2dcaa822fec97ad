"""Changes of issues, comments, and similar issues."""

from typing import Annotated

from msgspec import Meta, Struct

from control.issue_changes import set_discarded
from dashboard.api.operation import Call, NoInput, Operation
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


async def _update(call: Call[NoInput, Update]) -> Issue:
    return await changes_of(call.state).update(call.issue(), call.body, by=call.by, key=call.key)


async def _update_many(call: Call[NoInput, BulkUpdate]) -> ChangedIssues:
    project, body = call.project(), call.body
    update = Update(**{name: getattr(body, name) for name in Update.__struct_fields__})
    await call.require_issues(body.issues)
    changes, key = changes_of(call.state), call.request_name(project.id)
    if key:
        # The project remembers the whole request: another list with the same key must not change any issue.
        await call.edit(lambda unchanged: unchanged)
    return ChangedIssues(await changes.update_many(project.number, body.issues, update, by=call.by, key=key))


async def _merge(call: Call[NoInput, Merge]) -> Issue:
    await call.require_issues(call.body.issues)
    return await changes_of(call.state).merge(call.issue(), call.body.issues, by=call.by, key=call.key)


async def _unmerge(call: Call[NoInput, UnmergeData]) -> Issue:
    changes = changes_of(call.state)
    return await changes.unmerge(call.issue(), call.body.fingerprints, by=call.by, key=call.key)


async def _comment(call: Call[NoInput, CommentData]) -> ChangeDone:
    await changes_of(call.state).comment(call.issue(), call.body.text, by=call.by, key=call.key)
    return ChangeDone()


async def _discard(call: Call[NoInput, DiscardData]) -> Issue:
    projects, changes = call.state.dependencies.projects, changes_of(call.state)
    (issue,) = await changes.find([call.issue()])
    request = call.request_name(issue.project_id)
    return await set_discarded(projects, changes, issue, call.body.discard, call.author, request)


async def _similar(call: Call[SimilarQuery, NoInput]) -> SimilarIssues:
    return await call.reader.read(ListSimilarIssues(call.issue(), limit=call.query.limit))


OPERATIONS = (
    Operation("PATCH", "/issues/{issue}", "Resolve, ignore, reopen or assign an issue", _update, Role.MEMBER),
    Operation(
        "POST",
        "/projects/{project}/issues:bulk",
        "Apply the same change to many issues",
        _update_many,
        Role.MEMBER,
    ),
    Operation(
        "POST",
        "/issues/{issue}/merge",
        "Merge other issues into this one",
        _merge,
        Role.MEMBER,
        errors=(WireError.CONFLICT,),
    ),
    Operation(
        "POST",
        "/issues/{issue}/unmerge",
        "Split merged fingerprints off into separate issues",
        _unmerge,
        Role.MEMBER,
    ),
    Operation("POST", "/issues/{issue}/comments", "Comment on an issue", _comment, Role.MEMBER, status=201),
    Operation(
        "POST",
        "/issues/{issue}/discard",
        "Drop an issue's new events before they are stored, or store them again",
        _discard,
        Role.ADMIN,
    ),
    Operation(
        "GET", "/issues/{issue}/similar", "Issues with the most similar grouping", _similar, Role.VIEWER
    ),
)
