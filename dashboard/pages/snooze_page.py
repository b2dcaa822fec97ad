"""The page behind a message's link that ignores an issue for a while: one click.

Opening it changes nothing, because mail scanners and previews of chats open links.
"""

from aiohttp import web

from dashboard.dependencies import state_of
from dashboard.http.inputs import read_issue
from dashboard.pages.render import page
from dashboard.requested_project import find_project
from dashboard.view.change_notice import ignored
from storage.read.issues.issue_calls import GetIssue


async def show_snoozes(request: web.Request) -> web.Response:
    """The issue and how long to ignore it; of a merged issue, the one that has its events."""
    state = state_of(request)
    issue = await state.dependencies.reader.read(GetIssue(read_issue(request.match_info["issue"])))
    return page(
        request,
        "snooze.html",
        project=find_project(state, issue.project_id),
        issue=issue,
        ignored=ignored(issue.ignore_until),
    )
